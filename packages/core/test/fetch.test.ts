import { createHmac } from 'node:crypto'
import { githubWebhook, memoryStore } from '@webhook-inbox/core'
import { describe, expect, it } from 'vitest'

const secret = "It's a Secret to Everybody"
const body = 'Hello, World!'
const signature = 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17'

function request(overrides: Record<string, string> = {}, text = body): Request {
  return new Request('https://hooks.example.test/webhooks/github', {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-github-event': 'push',
      'x-github-delivery': '0b989ba4-242f-11e5-81e1-c7b6966d2516',
      'x-hub-signature-256': signature,
      ...overrides,
    },
    body: text,
  })
}

describe('the fetch handler', () => {
  it("accepts GitHub's published vector once and answers its copy", async () => {
    let runs = 0
    const handle = githubWebhook({ secret, store: memoryStore(), handler: () => void runs++ })
    const first = await handle(request())
    expect(await first.text()).toBe(
      '{"status":"completed","deliveryId":"0b989ba4-242f-11e5-81e1-c7b6966d2516"}',
    )
    expect(first.status).toBe(200)
    expect(first.headers.get('webhook-inbox-status')).toBe('completed')
    const copy = await handle(request())
    expect(copy.status).toBe(200)
    expect(runs).toBe(1)
  })

  it('refuses a forged request', async () => {
    let runs = 0
    const handle = githubWebhook({ secret, store: memoryStore(), handler: () => void runs++ })
    const response = await handle(request({}, 'Hello, World?'))
    expect(response.status).toBe(401)
    expect(response.headers.get('content-type')).toBe('application/problem+json')
    expect(await response.json()).toMatchObject({ status: 401, code: 'signature_mismatch' })
    expect(runs).toBe(0)
  })

  it('decodes a form-encoded payload after verifying the form bytes', async () => {
    const form = `payload=${encodeURIComponent('{"action":"opened","title":"café ☕"}')}`
    const sign = createHmac('sha256', secret).update(form).digest('hex')
    let payload: unknown
    const handle = githubWebhook({
      secret,
      store: memoryStore(),
      handler: (webhook) => {
        payload = webhook.payload
      },
    })
    const response = await handle(
      request(
        {
          'content-type': 'application/x-www-form-urlencoded; charset=utf-8',
          'x-hub-signature-256': `sha256=${sign}`,
        },
        form,
      ),
    )
    expect(response.status).toBe(200)
    expect(payload).toEqual({ action: 'opened', title: 'café ☕' })
  })
})
