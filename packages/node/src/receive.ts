/** What every adapter on node:http does with a request: answered, or claimed with its response held. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  type ClaimedDelivery,
  optionError,
  type Receiver,
  receiverOptionNames,
} from '@webhook-inbox/core'
import { writeAnswer } from './answer.ts'
import { readNodeBody } from './body.ts'
import { defaultMaxHeldResponseBytes, type HeldResponse, holdResponse } from './hold.ts'
import { setProperty } from './request.ts'

/** Options that the adapters on node:http share. */
export interface NodeOnlyOptions {
  /** Answer this path only. Compared without case, query and one trailing slash. @default every path */
  readonly path?: string
  /**
   * The answer of a route handler is held until the delivery is settled. Above this many bytes it flows and only its
   * last chunk waits. @default 1048576 (1 MiB)
   */
  readonly maxHeldResponseBytes?: number
}

/** The names of all options of the adapters on node:http, for checks. */
export const nodeOptionNames: readonly string[] = [
  ...receiverOptionNames,
  'path',
  'maxHeldResponseBytes',
]

/** A delivery that this request has claimed. Its response is held: the answer of the handler settles it. */
export interface NodeClaim<Webhook extends ClaimedDelivery = ClaimedDelivery> extends HeldResponse {
  readonly webhook: Webhook
}

export interface ReceiveOptions<Context> {
  /** Handed to the option `handler`. */
  readonly context: Context
  /** Path or URL for the secret lookup. @default `req.originalUrl` where a framework has set it, else `req.url` */
  readonly url?: string
  readonly maxHeldResponseBytes?: number
}

/**
 * Takes a request through the receiver.
 * @returns the claim, with `req.webhook` and `req.rawBody` set and the response held; undefined when the request is
 * answered
 */
export async function receiveNode<Context, Webhook extends ClaimedDelivery>(
  req: IncomingMessage,
  res: ServerResponse,
  receiver: Receiver<Context, Webhook>,
  {
    context,
    url = urlOf(req),
    maxHeldResponseBytes = defaultMaxHeldResponseBytes,
  }: ReceiveOptions<Context>,
): Promise<NodeClaim<Webhook> | undefined> {
  const receipt = await receiver.receive(
    {
      method: req.method ?? '',
      url,
      headers: req.headers,
      body: (maxBytes) => readNodeBody(req, maxBytes),
      claimed: req.webhook,
    },
    context,
  )
  if (receipt.status !== 'claimed') {
    writeAnswer(req, res, receipt.answer)
    return undefined
  }
  if (res.headersSent) {
    // Somebody else has answered meanwhile, a timeout for instance: no handler could settle this any more.
    await receipt.settle({ status: 503 })
    return undefined
  }
  const { webhook } = receipt
  // The registry types what a request carries; which provider it is only the route knows.
  setProperty(req, 'webhook', webhook)
  setProperty(req, 'rawBody', webhook.rawBody)
  return { webhook, ...holdResponse(req, res, { receipt, maxHeldResponseBytes }) }
}

/**
 * Checks the option `maxHeldResponseBytes`.
 * @throws WebhookInboxError `ERR_OPTION` when it is not a positive whole number
 */
export function heldResponseLimit(value: number | undefined): number {
  if (value === undefined) return defaultMaxHeldResponseBytes
  if (Number.isSafeInteger(value) && value > 0) return value
  throw optionError(
    `webhook: "maxHeldResponseBytes" must be a positive whole number of bytes, for instance ${defaultMaxHeldResponseBytes}.`,
  )
}

function urlOf(req: IncomingMessage): string {
  const original: unknown = Reflect.get(req, 'originalUrl')
  return typeof original === 'string' ? original : (req.url ?? '/')
}
