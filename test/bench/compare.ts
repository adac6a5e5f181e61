/** Runs two ways of doing one thing in turns, and tells how they compare. */
import { randomUUID } from 'node:crypto'

export interface Contender {
  readonly name: string
  /** Claims a key that is new. */
  claim(id: string): Promise<void>
  /** Makes a settled record. */
  settle(id: string): Promise<void>
  /** Claims a key that is settled. */
  repeat(id: string): Promise<void>
}

export interface Figures {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
}

export interface Row {
  readonly what: string
  readonly callers: number
  readonly ours: Figures
  readonly theirs: Figures
}

/** Each contender runs this often, in turns; the middle run counts. */
const rounds = 3
const roundMs = 1000
const settledKeys = 2000

/** @returns a row for each number of callers, for new keys and for settled duplicates */
export async function compare(
  ours: Contender,
  theirs: Contender,
  callerCounts: readonly number[],
): Promise<readonly Row[]> {
  const settled = Array.from({ length: settledKeys }, () => randomUUID())
  for (const contender of [ours, theirs]) {
    for (let start = 0; start < settled.length; start += 100)
      await Promise.all(settled.slice(start, start + 100).map((id) => contender.settle(id)))
  }
  const rows: Row[] = []
  for (const callers of callerCounts) {
    const fresh = await inTurns(ours, theirs, callers, (one) => () => one.claim(randomUUID()))
    rows.push({ what: 'new keys', callers, ...fresh })
    let next = 0
    const repeat = (one: Contender) => () => one.repeat(settled[next++ % settled.length] ?? '')
    rows.push({ what: 'duplicates', callers, ...(await inTurns(ours, theirs, callers, repeat)) })
  }
  return rows
}

async function inTurns(
  ours: Contender,
  theirs: Contender,
  callers: number,
  callOf: (contender: Contender) => () => Promise<void>,
): Promise<{ readonly ours: Figures; readonly theirs: Figures }> {
  const measured: { readonly ours: Figures[]; readonly theirs: Figures[] } = {
    ours: [],
    theirs: [],
  }
  // The first round warms both up.
  for (let round = 0; round <= rounds; round++) {
    const oursNow = await measure(callers, callOf(ours))
    const theirsNow = await measure(callers, callOf(theirs))
    if (round === 0) continue
    measured.ours.push(oursNow)
    measured.theirs.push(theirsNow)
  }
  return { ours: middle(measured.ours), theirs: middle(measured.theirs) }
}

async function measure(callers: number, call: () => Promise<void>): Promise<Figures> {
  const timesMs: number[] = []
  const startedAtMs = performance.now()
  const untilMs = startedAtMs + roundMs
  async function caller(): Promise<void> {
    for (let nowMs = performance.now(); nowMs < untilMs; ) {
      await call()
      const endedAtMs = performance.now()
      timesMs.push(endedAtMs - nowMs)
      nowMs = endedAtMs
    }
  }
  await Promise.all(Array.from({ length: callers }, caller))
  const seconds = (performance.now() - startedAtMs) / 1000
  timesMs.sort((a, b) => a - b)
  return {
    perSecond: timesMs.length / seconds,
    p50Ms: timesMs[Math.floor(timesMs.length * 0.5)] ?? 0,
    p99Ms: timesMs[Math.floor(timesMs.length * 0.99)] ?? 0,
  }
}

function middle(figures: readonly Figures[]): Figures {
  const sorted = [...figures].sort((a, b) => a.perSecond - b.perSecond)
  return sorted[sorted.length >> 1] ?? { perSecond: 0, p50Ms: 0, p99Ms: 0 }
}

/** The rows as a table; a ratio above 1 is in favour of the store. */
export function markdown(title: string, rows: readonly Row[]): string {
  const head = [
    '',
    'callers',
    'store/s',
    'by hand/s',
    'ratio',
    'p50 ms',
    'by hand',
    'p99 ms',
    'by hand',
  ]
  const body = rows.map(({ what, callers, ours, theirs }) => [
    what,
    String(callers),
    ours.perSecond.toFixed(0),
    theirs.perSecond.toFixed(0),
    `${(ours.perSecond / theirs.perSecond).toFixed(1)} ×`,
    ours.p50Ms.toFixed(2),
    theirs.p50Ms.toFixed(2),
    ours.p99Ms.toFixed(2),
    theirs.p99Ms.toFixed(2),
  ])
  const widths = head.map((cell, index) =>
    Math.max(cell.length, ...body.map((row) => row[index]?.length ?? 0)),
  )
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, index) => (index === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[index] ?? 0))).join(' | ')} |`
  const rule = `|${widths.map((width, index) => (index === 0 ? '-'.repeat(width + 2) : `${'-'.repeat(width + 1)}:`)).join('|')}|`
  return [`### ${title}`, '', line(head), rule, ...body.map(line), ''].join('\n')
}
