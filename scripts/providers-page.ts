// Writes packages/core/PROVIDERS.md out of the catalogue. The suite fails when the page is not what this makes.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Provider, providers, type Signature, type TextSource } from '@webhook-inbox/core'
import * as jwtModule from '@webhook-inbox/core/jwt'
import { root } from './workspace.ts'

const jwtEntries = Object.values(jwtModule).filter(
  (value): value is Provider => typeof value === 'object' && 'signature' in value,
)

/** The page as Markdown. */
export function providersPage(): string {
  const entries = [...Object.values(providers), ...jwtEntries].sort((a, b) =>
    a.name < b.name ? -1 : 1,
  )
  const lines = [
    '# Providers',
    '',
    `${entries.length} senders, as data. This page is made of the entries by \`pnpm providers\`; each is a file in [src/providers/entries](src/providers/entries).`,
    '',
    'A name goes into `webhook({ provider: … })`. Those marked ʲ sign with JSON Web Tokens and are imported from',
    '`@webhook-inbox/core/jwt`. **Kept** is how long a completed id is remembered at least. **Success** is what the sender takes for',
    'one where that is less than any 2xx: what this library answers itself is then that. A dash means that the sender does not say,',
    'and that a safe value stands in: 10 s to answer, 1 MiB, and retries.',
    '',
    ...table(
      [
        'Name',
        'Sender',
        'Signature',
        'Delivery id',
        'Event',
        'Handshakes',
        'Answer within',
        'Largest body',
        'Retries by itself',
        'Kept',
        'Success',
        'Never again after',
      ],
      entries.map((entry) => [
        `\`${entry.name}\`${jwtEntries.includes(entry) ? ' ʲ' : ''}`,
        entry.title ?? entry.name,
        [entry.signature].flat().map(signatureText).join('<br>'),
        idText(entry),
        eventText(entry),
        (entry.handshakes ?? []).map(({ name, method = 'POST' }) => `${method} ${name}`).join(', '),
        entry.ackDeadlineMs === undefined ? '–' : duration(entry.ackDeadlineMs),
        entry.maxBodyBytes === undefined ? '–' : `${entry.maxBodyBytes / 1_048_576} MiB`,
        retriesText(entry),
        duration(entry.retentionMs),
        successText(entry),
        stopText(entry),
      ]),
    ),
    '',
    '## Where this library differs from theirs',
    '',
    ...decisions.map((text) => `- ${text}`),
    '',
    '## Secrets, sources, and what could not be confirmed',
    '',
    'What is not confirmed is said by no field of an entry; where a value had to be chosen, it is the safe one.',
    '',
    ...entries.flatMap(sourcesOf),
  ]
  return `${lines.join('\n').trimEnd()}\n`
}

/** What was decided where the senders' own libraries can be doubted; test/vectors.test.ts and test/sdks hold it. */
const decisions: readonly string[] = [
  '**Time, both ways.** A signature that is too far ahead is refused as one that is too old. The libraries of Stripe, Slack, WorkOS, HubSpot, Mux, Paddle and Contentful take any time ahead of their clock; that of Replicate judges no time at all, and is held to the standard here. The library of Box refuses one that is a second ahead, which two clocks may be: ten minutes either way are taken.',
  '**Paddle** takes no signature older than five seconds, as its library has it. Retries are signed anew; `toleranceMs` widens it.',
  '**Numbers are digits.** `123abc` is no time, and where a time stands beside other signed text it is the whole of it: no digit of it can be moved into the body.',
  '**The content type** is signed by nobody and tells nothing: bytes that are JSON are JSON, the rest may be a form.',
  '**HubSpot** and Coinbase: what is no JSON is refused, so that nothing of the address or of a header can be moved into the body, and no plain hash be lengthened.',
  '**Adyen:** of the signed fields only `merchantReference` may hold a colon, and each is a text: the colon is all that stands between them.',
  '**SNS:** a receiver wants the ARN of the topic; `verify` takes the certificate alone and leaves the topic to its caller. Certificates come from the hosts of its regions.',
  '**One writing of a signature.** Base64 has its padding and the usual alphabet, hex is in small letters (of Notion and Discord also in capitals, as their libraries have it), nothing follows. Some libraries take other texts for the same bytes.',
  '**Bytes as they came.** What is no UTF-8 is judged as it is, and a byte order mark is part of it. Libraries that take text cannot tell; those of WorkOS, Zoom and Adyen parse the body and write it again.',
  '**A header that stands there twice** with two times in it proves nothing.',
  '**OpenAI:** a secret without `whsec_` is UTF-8, and a signature without `v1,` is taken where it is the only one, as its library has it.',
  '**Meta** signs the body with escapes beyond ASCII. The signature of the escaped form and of the raw one both count: they prove the same JSON. Box the same. HubSpot signs the address with its punctuation decoded, its library says as it is written: both count.',
  '**Twilio:** a form field without `=` is refused. Nothing stands between names and values in what is signed, so `a=b` and `ab` would be one.',
  '**A delivery is a POST.** Twilio and MessageBird can be told to send GET; such a request is answered 405, and `verify` judges it all the same. Choose POST.',
  '**Ids that are signed** are read from the headers that prove them: of two families in one request only that family counts (Standard Webhooks, Svix, GitLab).',
]

function table(head: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|') || ' ').join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)]
}

function signatureText(signature: Signature): string {
  const where =
    signature.query !== undefined
      ? `query \`${signature.query}\``
      : signature.header === undefined
        ? 'in the body'
        : [signature.header].flat().slice(0, 2).map(code).join(', ') +
          ([signature.header].flat().length > 2 ? ', …' : '')
  switch (signature.scheme) {
    case 'token':
      return `${where}: the secret itself; covers no byte`
    case 'function':
      return `${where}: by a function`
    case 'jwt':
      return `${where}: ${signature.algorithms.join(', ')}${signature.bodyHash === undefined ? '; covers no byte of the body' : ''}`
    default:
      break
  }
  const algorithm = {
    hmac: () => `HMAC ${'hash' in signature ? signature.hash : ''}`,
    digest: () => `plain ${'hash' in signature ? signature.hash : ''}`,
    ed25519: () => 'Ed25519',
    'ecdsa-p256': () => 'ECDSA P-256',
    rsa: () => `RSA ${'hash' in signature ? (signature.hash ?? 'SHA-256') : 'SHA-256'}`,
  }[signature.scheme]()
  const content =
    typeof signature.content === 'string'
      ? code(signature.content.replaceAll('\n', '\\n'))
      : 'content by a function'
  const time = signature.timestamp
  const age =
    time?.pastMs === undefined ? '' : `, ±${duration(Math.ceil(time.pastMs / 1000) * 1000)}`
  return `${where}: ${algorithm}, ${signature.encoding}, of ${content}${age}`
}

function idText({ deliveryId, items }: Provider): string {
  if (items !== undefined) {
    return typeof items === 'function'
      ? 'one for each item, by a function'
      : `one for each item: ${sourceText(items.id).replace('the body', 'the item')}`
  }
  return 'dedup' in deliveryId ? 'none: equal bodies are distinct events' : sourceText(deliveryId)
}

function eventText({ event, items }: Provider): string {
  return sourceText(items === undefined || typeof items === 'function' ? event : items.event)
}

function sourceText(source: TextSource): string {
  if (typeof source === 'function') return 'by a function'
  if ('header' in source) return code(source.header)
  if ('query' in source) return `query ${code(source.query)}`
  if ('body' in source) return `body ${code(source.body)}`
  if ('digest' in source) return 'SHA-256 of the body'
  if ('value' in source) return `always ${code(source.value)}`
  if ('anyOf' in source) return source.anyOf.map(sourceText).join(', else ')
  return source.join.map(sourceText).join(' + ')
}

function retriesText({ retriesByItself, unconfirmed = [] }: Provider): string {
  if (unconfirmed.some((text) => text.startsWith('retries'))) return '–'
  return retriesByItself ? 'yes' : 'no'
}

function successText({ success }: Provider): string {
  if (success === undefined) return '2xx'
  const { status, body, when } = success
  const text = body === undefined ? '' : body === '' ? ', empty' : `, ${code(body)}`
  const isOfForms = when?.some((condition) => 'header' in condition)
  const to = when === undefined ? '' : isOfForms ? ' to forms' : ' to events'
  return `${status}${text}${to}`
}

function stopText({ stopStatuses = [], stopHeader }: Provider): string {
  return [
    ...stopStatuses.map(String),
    ...(stopHeader === undefined ? [] : [code(`${stopHeader[0]}: ${stopHeader[1]}`)]),
  ].join(', ')
}

function sourcesOf(entry: Provider): readonly string[] {
  const { sources = [], unconfirmed = [] } = entry
  return [
    `**${entry.title ?? entry.name}** (\`${entry.name}\`). Secret: ${entry.secretIs ?? 'the signing secret'}.`,
    '',
    ...sources.map(
      ({ url, asOf, facts }) =>
        `- ${url.startsWith('npm:') ? code(url) : `<${url}>`} (${asOf})${facts === undefined ? '' : `: ${facts.join(', ')}`}`,
    ),
    ...(unconfirmed.length === 0 ? [] : [`- Not confirmed: ${unconfirmed.join('; ')}`]),
    '',
  ]
}

function duration(ms: number): string {
  for (const [unit, size] of [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['min', 60_000],
    ['s', 1000],
  ] as const)
    if (ms >= size && ms % size === 0) return `${ms / size} ${unit}`
  return `${ms} ms`
}

function code(text: string): string {
  return `\`${text}\``
}

if (process.argv[1] === import.meta.filename)
  writeFileSync(join(root, 'packages/core/PROVIDERS.md'), providersPage())
