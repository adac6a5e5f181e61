import { type AdapterGuarantee, buildRequest, keyOf, type SendOptions, secret } from './harness.ts'

const encoder = new TextEncoder()

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** From a request to a delivery, or to a refusal. */
export const admissionGuarantees = {
  async A1({ serve, expect }) {
    const site = await serve()
    const reply = await site.deliver(
      new Request(site.endpoint, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-github-event': 'push',
          'x-github-delivery': '0b989ba4-242f-11e5-81e1-c7b6966d2516',
          'x-hub-signature-256':
            'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
        },
        body: 'Hello, World!',
      }),
    )
    expect({ status: reply.status, state: reply.state }).toEqual({
      status: 200,
      state: 'completed',
    })
    expect(site.runs.length).toEqual(1)
  },

  async A2({ serve, expect }) {
    const site = await serve()
    const good = await buildRequest(site.url)
    const signature = good.headers.get('x-hub-signature-256') ?? ''
    const digest = signature.slice('sha256='.length)
    const signed = (value: string | undefined): SendOptions => ({
      headers: { 'x-hub-signature-256': value },
    })
    const attempts: readonly (readonly [SendOptions, string])[] = [
      [{ secret: 'another secret' }, 'signature_mismatch'],
      [{ ...signed(signature), payload: { ref: 'refs/heads/evil' } }, 'signature_mismatch'],
      [signed(undefined), 'signature_missing'],
      [signed(''), 'signature_missing'],
      [signed(digest), 'signature_mismatch'],
      [signed(`sha1=${digest}`), 'signature_mismatch'],
      [signed(`sha256=${'0'.repeat(64)}`), 'signature_mismatch'],
      [signed(signature.slice(0, -1)), 'signature_mismatch'],
      [signed(`${signature}0`), 'signature_mismatch'],
      [signed(`${signature}, ${signature}`), 'signature_mismatch'],
      [signed('sha256=not hex at all'), 'signature_mismatch'],
    ]
    for (const [attempt, code] of attempts) {
      const reply = await site.send(attempt)
      expect({ status: reply.status, state: reply.state, code: codeOf(reply.text) }).toEqual({
        status: 401,
        state: 'refused',
        code,
      })
    }
    expect(site.observed.calls).toEqual([])
    expect(site.runs.length).toEqual(0)
    expect((await site.send()).status).toEqual(200)
  },

  async A3({ serve, expect }) {
    const site = await serve()
    const body = '{ "action":"opened",\n "title":"café ☕ \\u0000" }'
    await site.send({
      id: 'd-3',
      event: 'issues',
      hookId: '42',
      body,
      headers: { 'x-request-note': 'one' },
    })
    const [webhook] = site.runs
    if (webhook === undefined) throw new Error('Nothing ran.')
    expect({
      provider: webhook.provider,
      endpoint: webhook.endpoint,
      id: webhook.id,
      event: webhook.event,
      action: webhook.action,
      key: webhook.key,
      attempt: webhook.attempt,
      fence: Number.isSafeInteger(webhook.fence) && webhook.fence > 0,
      receivedAt: webhook.receivedAt instanceof Date,
      aborted: webhook.signal.aborted,
      note: webhook.headers['x-request-note'],
      bytes: hex(webhook.rawBody),
      payload: webhook.payload,
    }).toEqual({
      provider: 'github',
      endpoint: '42',
      id: 'd-3',
      event: 'issues',
      action: 'opened',
      key: keyOf('d-3', '42'),
      attempt: 1,
      fence: true,
      receivedAt: true,
      aborted: false,
      note: 'one',
      bytes: hex(encoder.encode(body)),
      payload: { action: 'opened', title: 'café ☕ \u0000' },
    })
    const keys = ['mail', 'mail', 'charge'].map((purpose) => webhook.idempotencyKey(purpose))
    expect([keys[0] === keys[1], keys[0] === keys[2]]).toEqual([true, false])
  },

  async A4({ serve, expect }) {
    const site = await serve()
    const payload = { action: 'opened', text: 'a & b = c + d % e ☕' }
    const types = [
      'application/x-www-form-urlencoded',
      'Application/X-WWW-Form-Urlencoded; charset=utf-8',
    ]
    for (const [index, type] of types.entries()) {
      const id = `form-${index}`
      const reply = await site.send({ id, payload, form: true, headers: { 'content-type': type } })
      expect(reply.status).toEqual(200)
    }
    expect(site.runs.map((webhook) => webhook.payload)).toEqual([payload, payload])
    const forged = await site.send({
      id: 'forged',
      payload,
      form: true,
      secret: 'another secret',
    })
    expect(forged.status).toEqual(401)
  },

  async A5({ serve, expect }) {
    const site = await serve({ options: { secret: ['new secret', secret] } })
    expect((await site.send({ id: 'a', secret })).status).toEqual(200)
    expect((await site.send({ id: 'b', secret: 'new secret' })).status).toEqual(200)
    expect((await site.send({ id: 'c', secret: 'older secret' })).status).toEqual(401)
    const indexes = site.events.flatMap((event) =>
      event.type === 'verified' ? [event.secretIndex] : [],
    )
    expect(indexes).toEqual([1, 0])
  },

  async A6({ serve, expect }) {
    const site = await serve({
      options: {
        secret: async ({ headers }) => {
          switch (headers['x-tenant']) {
            case 'one':
              return secret
            case 'two':
              return ['second secret']
            case 'broken':
              throw new Error('the vault is closed')
            default:
              return undefined
          }
        },
      },
    })
    const send = (id: string, tenant: string, key = secret) =>
      site.send({ id, secret: key, headers: { 'x-tenant': tenant } })
    expect((await send('a', 'one')).status).toEqual(200)
    expect((await send('b', 'two', 'second secret')).status).toEqual(200)
    expect((await send('c', 'two')).status).toEqual(401)
    expect((await send('d', 'nobody')).status).toEqual(401)
    const broken = await send('e', 'broken')
    expect({
      status: broken.status,
      code: codeOf(broken.text),
      wait: Number(broken.headers.get('retry-after')) >= 1,
    }).toEqual({ status: 503, code: 'secret_unavailable', wait: true })
    expect(site.runs.length).toEqual(2)
  },

  async A7({ serve, expect }) {
    const site = await serve()
    const header = (name: string, value: string | undefined): SendOptions => ({
      headers: { [name]: value },
    })
    const id = 'x-github-delivery'
    const event = 'x-github-event'
    const attempts: readonly (readonly [SendOptions, string])[] = [
      [header(id, undefined), 'delivery_id_missing'],
      [header(id, ''), 'delivery_id_missing'],
      [header(id, 'two words'), 'delivery_id_invalid'],
      [header(id, 'x'.repeat(256)), 'delivery_id_invalid'],
      [header(id, 'caf\u00e9'), 'delivery_id_invalid'],
      [header(id, 'one, two'), 'delivery_id_invalid'],
      [header(event, undefined), 'event_missing'],
      [header(event, ''), 'event_missing'],
      [header(event, 'pull request'), 'event_invalid'],
      [header(event, 'x'.repeat(129)), 'event_invalid'],
    ]
    for (const [attempt, code] of attempts) {
      const reply = await site.send(attempt)
      expect({ status: reply.status, state: reply.state, code: codeOf(reply.text) }).toEqual({
        status: 400,
        state: 'refused',
        code,
      })
    }
    expect(site.observed.calls).toEqual([])
    expect(site.runs.length).toEqual(0)
    expect((await site.send({ id: 'x'.repeat(255) })).status).toEqual(200)
  },

  async A8({ serve, expect }) {
    const site = await serve()
    for (const hookId of ['abc', '1'.repeat(21), '1 2', '-1', '1, 1', '0x1']) {
      const reply = await site.send({ hookId })
      expect({ status: reply.status, code: codeOf(reply.text) }).toEqual({
        status: 400,
        code: 'endpoint_invalid',
      })
    }
    expect(site.observed.calls).toEqual([])
    expect(site.runs.length).toEqual(0)
    expect((await site.send({ id: 'long', hookId: '1'.repeat(20) })).status).toEqual(200)
    expect((await site.send({ id: 'none', hookId: '' })).status).toEqual(200)
    expect(site.events.filter(({ type }) => type === 'warning').length).toEqual(1)
  },

  async A9({ serve, expect }) {
    const site = await serve({ options: { maxBodyBytes: 1000 } })
    const exact = await site.send({ id: 'exact', body: `${'☕'.repeat(333)}x` })
    expect(exact.status).toEqual(200)
    expect(site.runs[0]?.rawBody.length).toEqual(1000)
    const calls = site.observed.calls.length
    const over = await site.send({ id: 'over', body: 'x'.repeat(1001) })
    expect({ status: over.status, state: over.state, code: codeOf(over.text) }).toEqual({
      status: 413,
      state: 'refused',
      code: 'body_too_large',
    })
    expect(site.observed.calls.length).toEqual(calls)
    expect(site.runs.length).toEqual(1)
  },

  async A10({ serve, expect }) {
    const site = await serve()
    for (const encoding of ['gzip', 'br', 'deflate', 'GZIP', 'identity, gzip', 'unknown']) {
      const reply = await site.send({ headers: { 'content-encoding': encoding } })
      expect({ status: reply.status, code: codeOf(reply.text) }).toEqual({
        status: 415,
        code: 'content_encoding_unsupported',
      })
    }
    expect(site.observed.calls).toEqual([])
    const identity = await site.send({ headers: { 'content-encoding': 'identity' } })
    expect(identity.status).toEqual(200)
    expect(site.runs.length).toEqual(1)
  },

  async A11({ serve, expect }) {
    const site = await serve()
    const ping = await site.send({ event: 'ping', payload: { zen: 'Keep it logically awesome.' } })
    expect({ status: ping.status, state: ping.state, body: JSON.parse(ping.text) }).toEqual({
      status: 200,
      state: 'ping',
      body: { status: 'ping', deliveryId: 'd-1' },
    })
    expect(site.observed.calls).toEqual([])
    expect(site.runs.length).toEqual(0)
    const forged = await site.send({ event: 'ping', secret: 'another secret' })
    expect(forged.status).toEqual(401)

    const listed = await serve({ options: { events: ['push', 'ping'] } })
    expect((await listed.send({ event: 'ping' })).state).toEqual('completed')
    expect(listed.runs.length).toEqual(1)
  },

  async A12({ serve, expect }) {
    const site = await serve({ options: { events: ['push', 'issues.opened'] } })
    const ignored = await site.send({ event: 'star', payload: { action: 'created' } })
    expect({
      status: ignored.status,
      state: ignored.state,
      body: JSON.parse(ignored.text),
    }).toEqual({ status: 202, state: 'ignored', body: { status: 'ignored', deliveryId: 'd-1' } })
    const closed = await site.send({ event: 'issues', payload: { action: 'closed' } })
    expect(closed.state).toEqual('ignored')
    expect(site.observed.calls).toEqual([])
    expect(site.runs.length).toEqual(0)
    const opened = await site.send({ id: 'a', event: 'issues', payload: { action: 'opened' } })
    expect(opened.state).toEqual('completed')
    expect((await site.send({ id: 'b', event: 'push' })).state).toEqual('completed')
  },

  async A13({ serve, expect }) {
    const site = await serve()
    const bodies: readonly (readonly [string | Uint8Array<ArrayBuffer>, unknown])[] = [
      ['null', null],
      ['7', 7],
      ['"text"', 'text'],
      ['false', false],
      ['[]', []],
      ['{"a":1}', { a: 1 }],
      ['\ufeff{"a":1}', { a: 1 }],
      ['', undefined],
      ['{"a":', undefined],
      ['<xml/>', undefined],
      [Uint8Array.from([0x22, 0xff, 0xfe, 0x22]), undefined],
      [Uint8Array.from({ length: 256 }, (_, byte) => byte), undefined],
    ]
    for (const [index, [body]] of bodies.entries()) {
      const reply = await site.send({ id: `body-${index}`, body })
      expect({ index, status: reply.status }).toEqual({ index, status: 200 })
    }
    for (const [index, [body, payload]] of bodies.entries()) {
      const webhook = site.runs[index]
      const bytes = typeof body === 'string' ? encoder.encode(body) : body
      expect(hex(webhook?.rawBody ?? new Uint8Array())).toEqual(hex(bytes))
      expect(JSON.stringify(webhook?.payload) ?? 'nothing').toEqual(
        JSON.stringify(payload) ?? 'nothing',
      )
    }
  },

  async A14({ serve, expect }) {
    const site = await serve()
    const words = ['__proto__', 'constructor', 'toString', 'hasOwnProperty']
    for (const word of words) {
      const reply = await site.send({
        id: word,
        event: word,
        body: `{"${word}":{"polluted":true},"action":"${word}"}`,
      })
      expect({ word, status: reply.status }).toEqual({ word, status: 200 })
    }
    expect(site.runs.map(({ id, event, action }) => [id, event, action])).toEqual(
      words.map((word) => [word, word, word]),
    )
    expect(Reflect.get({}, 'polluted') === undefined).toEqual(true)
  },

  async A15({ serve, expect }) {
    const site = await serve({ mount: 'path', options: { maxBodyBytes: 200 } })
    const canary = 'canary-7f3a'
    const refusals: readonly SendOptions[] = [
      { secret: canary, payload: { canary } },
      { headers: { 'x-github-delivery': `${canary} ${canary}` } },
      { headers: { 'x-github-event': `${canary} ${canary}` } },
      { hookId: canary },
      { headers: { 'content-encoding': canary } },
      { body: canary.repeat(100) },
      { method: 'PUT', payload: { canary } },
    ]
    const codes: string[] = []
    for (const refusal of refusals) {
      const reply = await site.send(refusal)
      const body: Record<string, unknown> = JSON.parse(reply.text)
      codes.push(`${reply.status} ${body.code}`)
      expect({
        type: reply.headers.get('content-type'),
        state: reply.state,
        members: Object.keys(body),
        kinds: Object.values(body).map((value) => typeof value),
        status: body.status,
        leaks: reply.text.includes(canary) || JSON.stringify([...reply.headers]).includes(canary),
      }).toEqual({
        type: 'application/problem+json',
        state: 'refused',
        members: ['title', 'status', 'code', 'detail'],
        kinds: ['string', 'number', 'string', 'string'],
        status: reply.status,
        leaks: false,
      })
    }
    expect(codes).toEqual([
      '401 signature_mismatch',
      '400 delivery_id_invalid',
      '400 event_invalid',
      '400 endpoint_invalid',
      '415 content_encoding_unsupported',
      '413 body_too_large',
      '405 method_not_allowed',
    ])
  },

  async A16({ serve, expect }) {
    const site = await serve({ mount: 'path' })
    for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      const reply = await site.send({ method })
      expect({
        method,
        status: reply.status,
        allow: reply.headers.get('allow'),
        state: reply.state,
        code: method === 'HEAD' ? reply.text : codeOf(reply.text),
      }).toEqual({
        method,
        status: 405,
        allow: 'POST',
        state: 'refused',
        code: method === 'HEAD' ? '' : 'method_not_allowed',
      })
    }
    expect(site.observed.calls).toEqual([])
    expect(site.runs.length).toEqual(0)
    expect((await site.send()).status).toEqual(200)
  },

  async A17({ serve, expect }) {
    const site = await serve({ mount: 'path' })
    const paths = [
      '/webhooks/github?from=hub',
      '/webhooks/github/',
      '/webhooks/github/?a=/b',
      '/WebHooks/GITHUB',
    ]
    for (const [index, path] of paths.entries()) {
      const reply = await site.send({ id: `path-${index}`, path })
      expect({ path, state: reply.state }).toEqual({ path, state: 'completed' })
    }
    expect(site.runs.length).toEqual(paths.length)
  },

  async A18({ serve, expect }) {
    const site = await serve({ mount: 'path' })
    const paths = ['/', '/webhooks', '/webhooks/github/more', '/webhooks/github2', '/WEBHOOKS/x']
    for (const path of paths) {
      const reply = await site.send({ path })
      expect({ path, status: reply.status, state: reply.state, text: reply.text }).toEqual({
        path,
        status: 200,
        state: null,
        text: 'behind',
      })
      expect((await site.send({ path, method: 'GET' })).text).toEqual('behind')
    }
    expect(site.observed.calls).toEqual([])
    expect(site.events.length).toEqual(0)
  },
} as const satisfies Record<string, AdapterGuarantee>

function codeOf(text: string): unknown {
  const problem: Record<string, unknown> = JSON.parse(text)
  return problem.code
}
