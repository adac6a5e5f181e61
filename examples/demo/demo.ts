// Sends every GitHub payload to three receivers as the internet would: in copies, at the same moment, forged, and
// over the death of the receiver. Then counts what really ran. `--serve` keeps the receivers up afterwards.
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { githubDeliveries } from './deliveries.ts'
import { type ReceiverProcess, receiverProcess } from './receiver-process.ts'
import { type Result, type RunRecord, reportOf } from './report.ts'
import { createTraffic, type Traffic } from './traffic.ts'

const frameworks = ['express', 'koa', 'hono']
const leaseMs = 2000
const secret = randomBytes(16).toString('hex')
const folder = mkdtempSync(join(tmpdir(), 'webhook-inbox-demo-'))
const serve = process.argv.includes('--serve')
let serving = false

const deliveries = githubDeliveries(secret)
const expected = deliveries.filter(({ event }) => event !== 'ping').map(({ id }) => id)
const killed = deliveries.find(({ event }) => event === 'push') ?? deliveries[0]
if (killed === undefined) throw new Error('There are no deliveries to send.')

const receivers = frameworks.map((framework) =>
  receiverProcess(framework, { folder, secret, leaseMs, hangOn: killed.id, onRun: showRun }),
)
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, async () => {
    await stop()
    process.exit(serving ? process.exitCode : 1)
  })
}

try {
  await Promise.all(receivers.map((receiver) => receiver.start()))
  console.log(`Every example payload of GitHub, ${deliveries.length} in number, signed, to ${frameworks.join(', ')}.
Each is sent at least twice, a third of them five times at the same moment, a fifth form-encoded, some forged.
${deliveries.length - expected.length} are pings, which are answered and run nothing. Each receiver is killed once while a handler runs.
`)
  const traffic = receivers.map((receiver) => createTraffic(receiver, deliveries, killed))
  const progress = setInterval(() => showProgress(traffic), 1000)
  await Promise.all(traffic.map((one) => one.run()))
  clearInterval(progress)
  showProgress(traffic)

  const results = receivers.map((receiver, index) => resultOf(receiver, traffic[index]))
  const { text, exitCode } = reportOf(results)
  console.log(`\n${text}`)
  process.exitCode = exitCode
} catch (error) {
  await stop()
  throw error
}
if (serve) keepUp()
else await stop()

function resultOf(receiver: ReceiverProcess, traffic: Traffic | undefined): Result {
  if (traffic === undefined || killed === undefined) throw new Error('No traffic was sent.')
  const { framework } = receiver
  const { answers } = traffic
  return { framework, answers, expected, killed: killed.id, leaseMs, runs: receiver.runs() }
}

function showProgress(traffic: readonly Traffic[]): void {
  const parts = traffic.map(({ done, waitsForLease }, index) => {
    const note = waitsForLease ? ' (killed; waiting for its lease to end)' : ''
    return `${frameworks[index]} ${done}/${deliveries.length}${note}`
  })
  console.log(`  ${parts.join('   ')}`)
}

function showRun(framework: string, { phase, event, id, attempt, fence }: RunRecord): void {
  if (serving && phase === 'finished')
    console.log(`${framework} ran ${event} ${id} (attempt ${attempt}, fence ${fence})`)
}

function keepUp(): void {
  serving = true
  const urls = receivers.map(({ url }) => url).join(' ')
  console.log(`
The receivers are still up; Ctrl-C stops them. This sends one signed delivery to each (204: the handler ran).
Repeat the lines from "for" on to send copies (200: answered, not run).

body='{"zen":"Keep it logically awesome."}'
signature=$(printf %s "$body" | openssl dgst -sha256 -hmac '${secret}' | sed 's/^.* //')
id=demo-$(date +%s)
for url in ${urls}; do
  curl -s -w ' %{http_code}\\n' "$url" -H 'content-type: application/json' -H 'x-github-event: push' \\
    -H "x-github-delivery: $id" -H "x-hub-signature-256: sha256=$signature" -d "$body"
done
`)
}

async function stop(): Promise<void> {
  await Promise.all(receivers.map((receiver) => receiver.stop()))
  rmSync(folder, { recursive: true, force: true })
}
