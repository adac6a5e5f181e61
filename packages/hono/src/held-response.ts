import {
  type ClaimedReceipt,
  isPermanentError,
  type RunEnd,
  type Settlement,
  statusHeader,
  toResponse,
} from '@webhook-inbox/core'

// No body may stand beside these. Node's server keeps one all the same, and throws when it is looked at.
const bodilessStatuses = new Set([101, 204, 205, 304])

/** A response that was settled before its first byte can leave. */
export interface HeldResponse {
  readonly response: Response
  /** What goes on after the response was returned: a body too large to hold, and its settlement. */
  readonly pending?: Promise<void>
}

/**
 * Reads the whole body, settles by the status, and gives the response to send. A body of more than `maxHeldBytes`
 * flows; its last chunk waits for the settlement. A body that breaks is a failure, whatever the status said.
 * Never rejects.
 */
export async function settleResponse(
  response: Response,
  receipt: ClaimedReceipt,
  maxHeldBytes: number,
  error: unknown,
): Promise<HeldResponse> {
  const { status } = response
  const end: RunEnd = { status, error }
  const held: Uint8Array<ArrayBuffer>[] = []
  try {
    const reader = bodilessStatuses.has(status) ? undefined : response.body?.getReader()
    if (reader === undefined) return settled(response, null, await receipt.settle(end))
    receipt.onTimeout(() => void reader.cancel().catch(() => {}))
    for (let length = 0; length <= maxHeldBytes; ) {
      const chunk = await reader.read()
      if (chunk.done) return settled(response, await joined(held), await receipt.settle(end))
      const bytes = toBytes(chunk.value)
      length += bytes.length
      if (bytes.length > 0) held.push(bytes)
    }
    receipt.reportUnheld()
    const { readable, writable } = new TransformStream<
      Uint8Array<ArrayBuffer>,
      Uint8Array<ArrayBuffer>
    >()
    const pending = flow(held, reader, writable.getWriter(), receipt, end)
    return { response: copied(response, readable, 'processing'), pending }
  } catch (broken) {
    return { response: ownResponse(await failBroken(receipt, broken)) }
  }
}

/** The response of a settlement when the handler's own cannot be sent. */
export function ownResponse({ state, replace }: Settlement): Response {
  // Nothing to replace: the work was committed before the answer went wrong.
  return replace === undefined
    ? new Response(null, { headers: { [statusHeader]: state } })
    : toResponse(replace)
}

// One chunk behind the source, so that the last one can wait. A reader that has hung up changes nothing: the body
// is read to its end, and that decides.
async function flow(
  held: readonly Uint8Array<ArrayBuffer>[],
  source: ReadableStreamDefaultReader<unknown>,
  sink: WritableStreamDefaultWriter<Uint8Array<ArrayBuffer>>,
  receipt: ClaimedReceipt,
  end: RunEnd,
): Promise<void> {
  const send = (bytes: Uint8Array<ArrayBuffer>): Promise<void> => sink.write(bytes).catch(() => {})
  const cut = (): void =>
    void sink.abort(new Error('The delivery was not processed.')).catch(() => {})
  receipt.onTimeout(cut)
  const [first = new Uint8Array(0), ...rest] = held
  let last = first
  try {
    for (const bytes of rest) {
      await send(last)
      last = bytes
    }
    for (;;) {
      const chunk = await source.read()
      if (chunk.done) break
      const bytes = toBytes(chunk.value)
      if (bytes.length === 0) continue
      await send(last)
      last = bytes
    }
  } catch (broken) {
    await failBroken(receipt, broken)
    return cut()
  }
  const settlement = await receipt.settle(end)
  // The head said 2xx and is gone: only a body that breaks off can take that back.
  if (settlement.replace !== undefined) return cut()
  await send(last)
  await sink.close().catch(() => {})
}

// The status is that of an answer that cannot be sent: 200 asks for the answer to send in its place.
function failBroken(receipt: ClaimedReceipt, broken: unknown): Promise<Settlement> {
  receipt.webhook.fail(broken, { retryable: !isPermanentError(broken) })
  return receipt.settle({ status: 200 })
}

function settled(
  response: Response,
  body: Uint8Array<ArrayBuffer> | null,
  { state, replace, headers }: Settlement,
): HeldResponse {
  return {
    response: replace === undefined ? copied(response, body, state, headers) : toResponse(replace),
  }
}

// A copy, because the headers of a fetched response cannot be changed.
function copied(
  response: Response,
  body: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array<ArrayBuffer>> | null,
  state: string,
  own: Settlement['headers'] = {},
): Response {
  const headers = new Headers(response.headers)
  headers.set(statusHeader, state)
  for (const [name, value] of Object.entries(own)) headers.set(name, value)
  // The handler streamed; this is whole, and a server that gives it a length must not call it chunked as well.
  if (!(body instanceof ReadableStream)) headers.delete('transfer-encoding')
  const { status } = response
  if (body === null) return new Response(null, { status, headers })
  if (!headers.has('content-type') && hidesTextType()) headers.set('content-type', textType)
  return new Response(body, { status, statusText: response.statusText, headers })
}

const textType = 'text/plain;charset=utf-8'

// Bun gives a text its type only when it sends it: our copy of c.text('…') would be sent as bytes.
function hidesTextType(): boolean {
  return !new Response('').headers.has('content-type')
}

async function joined(
  chunks: readonly Uint8Array<ArrayBuffer>[],
): Promise<Uint8Array<ArrayBuffer>> {
  const [only] = chunks
  return only !== undefined && chunks.length === 1
    ? only
    : new Uint8Array(await new Blob([...chunks]).arrayBuffer())
}

// Node's servers also send text chunks, so handlers exist that write them.
function toBytes(chunk: unknown): Uint8Array<ArrayBuffer> {
  if (typeof chunk === 'string') return new TextEncoder().encode(chunk)
  if (chunk instanceof Uint8Array) return new Uint8Array(chunk)
  throw new TypeError('A response body may hold bytes or text only.')
}
