import { setTimeout as sleep } from 'node:timers/promises'
import { type Delivery, forgeries } from './deliveries.ts'
import type { ReceiverProcess } from './receiver-process.ts'
import type { Answers } from './report.ts'

/** Requests that are on their way at the same time, to each receiver. */
const concurrency = 8

/** Everything that one receiver gets, and what it answered. */
export interface Traffic {
  readonly answers: Answers
  /** Deliveries that are done with all their copies. */
  readonly done: number
  /** The receiver was killed, and what it had claimed is not free yet. */
  readonly waitsForLease: boolean
  run(): Promise<void>
}

export function createTraffic(
  receiver: ReceiverProcess,
  deliveries: readonly Delivery[],
  killed: Delivery,
): Traffic {
  const answers: Answers = {
    genuine: 0,
    forged: 0,
    pings: 0,
    ran: 0,
    copies200: 0,
    copies202: 0,
    refused: 0,
    pingsAnswered: 0,
    cutOff: 0,
    unexpected: [],
  }
  let done = 0
  let waitsForLease = false

  async function post({ headers, body }: Delivery): Promise<number> {
    const response = await fetch(receiver.url, {
      method: 'POST',
      headers,
      body,
      signal: AbortSignal.timeout(15_000),
    })
    await response.arrayBuffer()
    return response.status
  }

  async function send(delivery: Delivery): Promise<number> {
    const isPing = delivery.event === 'ping'
    if (isPing) answers.pings += 1
    else answers.genuine += 1
    let status: number
    try {
      status = await post(delivery)
    } catch (error) {
      if (delivery === killed) answers.cutOff += 1
      else answers.unexpected.push(`${delivery.event} ${delivery.id} got no answer (${error})`)
      return 0
    }
    if (isPing && status === 200) answers.pingsAnswered += 1
    else if (status === 204) answers.ran += 1
    else if (status === 200) answers.copies200 += 1
    else if (status === 202) answers.copies202 += 1
    else answers.unexpected.push(`${delivery.event} ${delivery.id} was answered ${status}`)
    return status
  }

  async function forge(delivery: Delivery): Promise<void> {
    for (const forgery of forgeries(delivery)) {
      answers.forged += 1
      const status = await post(forgery)
      if (status === 401) answers.refused += 1
      else answers.unexpected.push(`a forged ${delivery.event} was answered ${status}`)
    }
  }

  async function deliver(delivery: Delivery, index: number): Promise<void> {
    // The forgeries come first and carry the genuine id: they must not use it up.
    if (index % 10 === 0) await forge(delivery)
    if (index % 3 === 0) {
      await Promise.all(Array.from({ length: 5 }, () => send(delivery)))
    } else {
      await send(delivery)
      await send(delivery)
    }
    done += 1
  }

  async function deliverAll(part: readonly (readonly [number, Delivery])[]): Promise<void> {
    const queue = part.values()
    await Promise.all(
      Array.from({ length: concurrency }, async () => {
        for (const [index, delivery] of queue) await deliver(delivery, index)
      }),
    )
  }

  /** The receiver dies between claim and completion; its delivery is sent again until somebody has run it. */
  async function killWhileRunning(): Promise<void> {
    const cutOff = send(killed)
    await receiver.started(killed.id)
    await receiver.kill()
    waitsForLease = true
    await cutOff
    await receiver.start()
    while ((await send(killed)) === 202) await sleep(200)
    waitsForLease = false
    await send(killed)
    done += 1
  }

  return {
    answers,
    get done() {
      return done
    },
    get waitsForLease() {
      return waitsForLease
    },
    async run() {
      const numbered = [...deliveries.entries()]
      const middle = deliveries.indexOf(killed)
      await deliverAll(numbered.slice(0, middle))
      await killWhileRunning()
      await deliverAll(numbered.slice(middle + 1))
    },
  }
}
