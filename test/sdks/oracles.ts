/**
 * The providers' own libraries as judges. They are loaded without their types, of which some have hundreds of thousands
 * of lines: what is asked of each is one call.
 */
import { createPrivateKey, createPublicKey, generateKeyPairSync, randomBytes } from 'node:crypto'
import { createRequire } from 'node:module'
import type { KeySource, Provider } from '@webhook-inbox/core'
import { entryOf } from '../providers/keys.ts'

const load = createRequire(import.meta.url)
// Loaded by a name that TypeScript does not follow.
const loadModule = (name: string) => import(/* @vite-ignore */ name)

/** A request as both sides judge it. */
export interface JudgedRequest {
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  readonly url: string
}

/** Where a library is laxer than this one, or judges something else, and why that is right. */
export interface Disagreements {
  /** It judges no age, or takes what is ahead of its clock: `past` and `future` in seconds that it takes and we refuse. */
  readonly past?: readonly number[]
  readonly future?: readonly number[]
  /** It refuses these and we take them. */
  readonly stricterFuture?: readonly number[]
  /** It parses the body and writes it again, so it judges other bytes than those that came. */
  readonly reserialises?: true
  /** It takes text: bytes that are no UTF-8 reach it as U+FFFD. */
  readonly text?: true
  /** It takes a signature in another writing: base64 without padding or with other letters, hex in capitals, blanks. */
  readonly laxEncoding?: true
  /** It reads `123abc` as a number. */
  readonly laxNumbers?: true
  /** It takes a header that stands there twice, with two times in it. */
  readonly repeated?: true
  /** It puts the body into its template with String.replace, to which `$$` and `$&` mean something else. */
  readonly dollars?: true
}

export interface Oracle {
  readonly sdk: string
  readonly entry: Provider
  readonly scheme?: number
  readonly secret?: string
  readonly privateKey?: string
  readonly keys?: KeySource
  readonly headers?: Readonly<Record<string, string>>
  readonly event?: string
  /** The fields that a request of this sender must have. */
  readonly payload?: Readonly<Record<string, unknown>> | readonly unknown[]
  readonly url?: string
  /** May throw: that is a refusal. Reads the clock of the process. */
  accepts(request: JudgedRequest): unknown
  /** What the library itself signs, where it can: the headers for these bytes. */
  sign?(body: string, at: Date): unknown
  readonly disagreements?: Disagreements
}

const text = (body: Uint8Array): string => Buffer.from(body).toString('utf8')
const json = (body: Uint8Array): unknown => JSON.parse(text(body))
const seconds = (at: Date): number => Math.floor(at.getTime() / 1000)
const pem = { type: 'pkcs8', format: 'pem' } as const

const whsec = `whsec_${randomBytes(32).toString('base64')}`
const hexSecret = randomBytes(32).toString('hex')
const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const ed = generateKeyPairSync('ed25519')
const edRaw = ed.publicKey.export({ type: 'spki', format: 'der' }).subarray(12)
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const rsaPublic = rsa.publicKey.export({ type: 'spki', format: 'pem' }).toString()
const rsaPrivate = rsa.privateKey.export(pem).toString()

const { Webhook } = load('standardwebhooks')
const { Webhook: SvixWebhook } = load('svix')
const Stripe = load('stripe')
const octokit = await loadModule('@octokit/webhooks-methods')
const { verifySlackRequest } = load('@slack/bolt/dist/receivers/verify-request.js')
const twilio = load('twilio')
const { EventWebhook } = load('@sendgrid/eventwebhook')
const discord = load('discord-interactions')
const { Paddle } = load('@paddle/paddle-node-sdk')
const { LinearWebhookClient } = load('@linear/sdk/webhooks')
const line = load('@line/bot-sdk')
const sanity = load('@sanity/webhook')
const { WebhooksHelper } = load('square')
const hubspot = load('@hubspot/api-client')
const { WorkOS } = load('@workos-inc/node')
const Razorpay = load('razorpay')
const { hmacValidator: HmacValidator } = load('@adyen/api-library')
const { WebhooksManager } = load('box-node-sdk/managers')
const notion = load('@notionhq/client')
const contentful = load('@contentful/node-apps-toolkit')
const Mux = load('@mux/mux-node').default
const Telnyx = load('telnyx').default
const Orb = load('orb-billing').default
const Pusher = load('pusher')
const coinbase = load('coinbase-commerce-node')
const livekit = load('livekit-server-sdk')
const messagebird = load('messagebird/lib/webhook-signature-jwt.js')
const braintree = load('braintree')
const SnsValidator = load('sns-validator')
const google = load('google-auth-library')
const { webhookCallback, Bot } = load('grammy')
const { WebhookVerificationService: tern } = load('@hookflo/tern')
const { WhatsAppAPI } = load('whatsapp-api-js')
const { verifyWebhook: verifyClerk } = load('@clerk/backend/webhooks')
const { Resend } = load('resend')
const OpenAI = load('openai').default
const polar = load('@polar-sh/sdk/webhooks')
const Replicate = load('replicate')
const { EventSubHttpListener } = load('@twurple/eventsub-http')
load('@shopify/shopify-api/adapters/node')
const { shopifyApi } = load('@shopify/shopify-api')
const { AwsLambdaReceiver } = load('@zoom/rivet/users')

const standardHeaders = (headers: Readonly<Record<string, string>>, family: string) => ({
  'webhook-id': headers[`${family}-id`],
  'webhook-timestamp': headers[`${family}-timestamp`],
  'webhook-signature': headers[`${family}-signature`],
})

const shopify = shopifyApi({
  apiKey: 'key',
  apiSecretKey: hexSecret,
  hostName: 'hooks.example.test',
  scopes: [],
  apiVersion: '2026-07',
  isEmbeddedApp: false,
  isTesting: true,
  logger: { log: () => {} },
})

const bot = new Bot('1:token', {
  botInfo: { id: 1, is_bot: true, first_name: 'b', username: 'b_bot' },
})
bot.on('message', () => {})

const gateway = new braintree.BraintreeGateway({
  environment: braintree.Environment.Sandbox,
  merchantId: 'merchant',
  publicKey: 'public',
  privateKey: 'private',
})

const adyen = new HmacValidator()
const muxClient = new Mux({ tokenId: 'a', tokenSecret: 'b' })
const orbClient = new Orb({ apiKey: 'a' })
const telnyxClient = new Telnyx({ apiKey: 'a', publicKey: edRaw.toString('base64') })
const pusherClient = new Pusher({ appId: '1', key: 'key', secret: hexSecret, cluster: 'eu' })
const workosClient = new WorkOS('sk_test')
const openaiClient = new OpenAI({ apiKey: 'a' })
const hubspotUrl = 'https://hooks.example.test/hs?x=1'

// Not the senders' own, but written by others from the same documentation.
const second = (
  platform: string,
  name: string,
  secret: string = hexSecret,
  disagreements: Disagreements = {},
): Oracle => ({
  sdk: `@hookflo/tern@4.1.0 (${name})`,
  entry: entryOf(name),
  secret,
  accepts: async ({ headers, body, url }) => {
    const request = new Request(url, { method: 'POST', headers, body: Buffer.from(body) })
    const { isValid } = await tern.verifyWithPlatformConfig(request, platform, secret)
    return isValid
  },
  disagreements: { text: true, ...disagreements },
})

const everyAge = [301, 3600, 31_536_000]
const everyAhead = [301, 3600, 31_536_000]

export const oracles: readonly Oracle[] = [
  {
    sdk: '@octokit/webhooks-methods@6.0.0',
    entry: entryOf('github'),
    secret: hexSecret,
    accepts: ({ headers, body }) =>
      octokit.verify(hexSecret, text(body), headers['x-hub-signature-256']),
    sign: async (body) => ({ 'x-hub-signature-256': await octokit.sign(hexSecret, body) }),
    disagreements: { text: true },
  },
  {
    sdk: 'stripe@23.1.0',
    entry: entryOf('stripe'),
    secret: whsec,
    accepts: ({ headers, body }) =>
      new Stripe('sk').webhooks.constructEvent(
        Buffer.from(body),
        headers['stripe-signature'],
        whsec,
      ),
    sign: (payload, at) => ({
      'stripe-signature': new Stripe('sk').webhooks.generateTestHeaderString({
        payload,
        secret: whsec,
        timestamp: seconds(at),
      }),
    }),
    disagreements: { repeated: true, text: true, future: everyAhead, laxNumbers: true },
  },
  {
    sdk: '@slack/bolt@5.1.0',
    entry: entryOf('slack'),
    secret: hexSecret,
    accepts({ headers, body }) {
      verifySlackRequest({
        signingSecret: hexSecret,
        body: text(body),
        headers: {
          'x-slack-signature': headers['x-slack-signature'],
          'x-slack-request-timestamp': Number(headers['x-slack-request-timestamp']),
        },
      })
      return true
    },
    disagreements: { text: true, future: everyAhead },
  },
  {
    sdk: 'standardwebhooks@1.1.1',
    entry: entryOf('standard-webhooks'),
    secret: whsec,
    accepts: ({ headers, body }) =>
      new Webhook(whsec).verify(text(body), standardHeaders(headers, 'webhook')) !== undefined,
    sign: (body, at) => ({
      'webhook-id': 'msg_1',
      'webhook-timestamp': String(seconds(at)),
      'webhook-signature': new Webhook(whsec).sign('msg_1', at, body),
    }),
    disagreements: { repeated: true, text: true, laxNumbers: true },
  },
  {
    sdk: 'standardwebhooks@1.1.1 (GitLab signing token)',
    entry: entryOf('gitlab'),
    secret: whsec,
    accepts: ({ headers, body }) =>
      new Webhook(whsec).verify(text(body), standardHeaders(headers, 'webhook')) !== undefined,
    disagreements: { repeated: true, text: true, laxNumbers: true },
  },
  {
    sdk: 'svix@1.99.1',
    entry: entryOf('svix'),
    secret: whsec,
    accepts: ({ headers, body }) =>
      new SvixWebhook(whsec).verify(text(body), headers) !== undefined,
    sign: (body, at) => ({
      'svix-id': 'msg_1',
      'svix-timestamp': String(seconds(at)),
      'svix-signature': new SvixWebhook(whsec).sign('msg_1', at, body),
    }),
    disagreements: { repeated: true, text: true, laxNumbers: true },
  },
  {
    sdk: '@clerk/backend@3.25.0',
    entry: entryOf('clerk'),
    secret: whsec,
    accepts: async ({ headers, body }) =>
      verifyClerk(
        new Request('https://hooks.example.test', {
          method: 'POST',
          headers,
          body: Buffer.from(body),
        }),
        { signingSecret: whsec },
      ),
    disagreements: { repeated: true, text: true, laxNumbers: true },
  },
  {
    sdk: 'resend@6.38.0',
    entry: entryOf('resend'),
    secret: whsec,
    accepts: ({ headers, body }) =>
      new Resend('re_1').webhooks.verify({
        payload: text(body),
        headers: {
          id: headers['svix-id'],
          timestamp: headers['svix-timestamp'],
          signature: headers['svix-signature'],
        },
        webhookSecret: whsec,
      }),
    disagreements: { repeated: true, text: true, laxNumbers: true },
  },
  {
    sdk: 'openai@6.49.0',
    entry: entryOf('openai'),
    secret: whsec,
    accepts: ({ headers, body }) => openaiClient.webhooks.unwrap(text(body), headers, whsec),
    disagreements: { text: true, laxNumbers: true, laxEncoding: true },
  },
  {
    sdk: '@polar-sh/sdk@0.49.0',
    entry: entryOf('polar'),
    secret: hexSecret,
    accepts({ headers, body }) {
      try {
        polar.validateEvent(text(body), headers, hexSecret)
      } catch (error) {
        // It knows only events of its own; the signature is judged before.
        if (error instanceof polar.WebhookVerificationError) throw error
      }
      return true
    },
    disagreements: { repeated: true, text: true, laxNumbers: true },
  },
  {
    sdk: 'replicate@1.4.0',
    entry: entryOf('replicate'),
    secret: whsec,
    accepts: ({ headers, body }) =>
      Replicate.validateWebhook({
        id: headers['webhook-id'],
        timestamp: headers['webhook-timestamp'],
        signature: headers['webhook-signature'],
        body: text(body),
        secret: whsec,
      }),
    disagreements: {
      text: true,
      past: everyAge,
      future: everyAhead,
      laxNumbers: true,
      laxEncoding: true,
    },
  },
  {
    sdk: '@shopify/shopify-api@13.1.0',
    entry: entryOf('shopify'),
    secret: hexSecret,
    headers: {
      'x-shopify-topic': 'orders/create',
      'x-shopify-api-version': '2026-07',
      'x-shopify-shop-domain': 'a.myshopify.com',
      'x-shopify-webhook-id': 'w-1',
    },
    accepts: async ({ headers, body }) =>
      (
        await shopify.webhooks.validate({
          rawBody: text(body),
          rawRequest: { method: 'POST', url: '/', headers },
          rawResponse: {},
        })
      ).valid,
    disagreements: { text: true },
  },
  {
    sdk: 'twilio@6.3.1 (form)',
    entry: entryOf('twilio'),
    secret: hexSecret,
    url: 'https://hooks.example.test/sms?foo=1&bar=2',
    payload: { CallSid: 'CA1', Body: 'café & tea', Empty: '' },
    accepts: ({ headers, body, url }) =>
      twilio.validateRequest(hexSecret, headers['x-twilio-signature'], url, paramsOf(text(body))),
    disagreements: { text: true },
  },
  {
    sdk: 'twilio@6.3.1 (shared key)',
    entry: entryOf('twilio'),
    scheme: 2,
    secret: hexSecret,
    url: 'https://hooks.example.test:8443/sms',
    payload: { MessageSid: 'SM1', Body: "it's" },
    headers: { 'x-twilio-webhooks-signature-settings': 'key=k1,algorithm=HMAC_SHA256' },
    accepts: ({ headers, body, url }) =>
      twilio.validateRequest(
        hexSecret,
        headers['x-twilio-signature'],
        url,
        paramsOf(text(body)),
        'HMAC_SHA256',
      ),
    disagreements: { text: true },
  },
  {
    sdk: '@sendgrid/eventwebhook@8.0.0',
    entry: entryOf('sendgrid'),
    secret: p256.publicKey.export({ type: 'spki', format: 'der' }).toString('base64'),
    privateKey: p256.privateKey.export(pem).toString(),
    accepts({ headers, body }) {
      const webhook = new EventWebhook()
      const key = p256.publicKey.export({ type: 'spki', format: 'der' }).toString('base64')
      return webhook.verifySignature(
        webhook.convertPublicKeyToECDSA(key),
        Buffer.from(body),
        headers['x-twilio-email-event-webhook-signature'],
        headers['x-twilio-email-event-webhook-timestamp'],
      )
    },
    disagreements: { laxEncoding: true, text: true },
  },
  {
    sdk: 'discord-interactions@4.4.0',
    entry: entryOf('discord'),
    secret: edRaw.toString('hex'),
    privateKey: ed.privateKey.export(pem).toString(),
    accepts: ({ headers, body }) =>
      discord.verifyKey(
        Buffer.from(body),
        headers['x-signature-ed25519'],
        headers['x-signature-timestamp'],
        edRaw.toString('hex'),
      ),
    disagreements: { laxEncoding: true },
  },
  {
    sdk: '@paddle/paddle-node-sdk@3.10.0',
    entry: entryOf('paddle'),
    secret: `pdl_ntfset_${hexSecret}`,
    accepts: ({ headers, body }) =>
      new Paddle('key').webhooks.isSignatureValid(
        text(body),
        `pdl_ntfset_${hexSecret}`,
        headers['paddle-signature'],
      ),
    disagreements: { text: true, future: [299, ...everyAhead], laxNumbers: true },
  },
  {
    sdk: '@linear/sdk@98.0.0',
    entry: entryOf('linear'),
    secret: `lin_wh_${hexSecret}`,
    accepts: ({ headers, body }) =>
      new LinearWebhookClient(`lin_wh_${hexSecret}`).verify(
        Buffer.from(body),
        headers['linear-signature'],
        Reflect.get(Object(json(body)), 'webhookTimestamp'),
      ),
    disagreements: { laxEncoding: true },
  },
  {
    sdk: '@line/bot-sdk@11.0.0',
    entry: entryOf('line'),
    secret: hexSecret,
    accepts: ({ headers, body }) =>
      line.validateSignature(Buffer.from(body), hexSecret, headers['x-line-signature']),
    disagreements: { laxEncoding: true },
  },
  {
    sdk: '@sanity/webhook@4.0.4',
    entry: entryOf('sanity'),
    secret: hexSecret,
    accepts: ({ headers, body }) =>
      sanity.isValidSignature(text(body), headers['sanity-webhook-signature'], hexSecret),
    sign: async (body, at) => ({
      'sanity-webhook-signature': await sanity.encodeSignatureHeader(body, at.getTime(), hexSecret),
    }),
    disagreements: { text: true, laxNumbers: true },
  },
  {
    sdk: 'square@46.0.0',
    entry: entryOf('square'),
    secret: hexSecret,
    url: 'https://example.test/webhook',
    accepts: ({ headers, body, url }) =>
      WebhooksHelper.verifySignature({
        requestBody: text(body),
        signatureHeader: headers['x-square-hmacsha256-signature'],
        signatureKey: hexSecret,
        notificationUrl: url,
      }),
    disagreements: { text: true },
  },
  {
    sdk: '@hubspot/api-client@13.5.0 (v3)',
    entry: entryOf('hubspot'),
    secret: hexSecret,
    url: hubspotUrl,
    payload: [{ eventId: 1 }],
    accepts: ({ headers, body, url }) =>
      hubspot.Signature.isValid({
        signatureVersion: 'v3',
        signature: headers['x-hubspot-signature-v3'],
        clientSecret: hexSecret,
        method: 'POST',
        url,
        requestBody: text(body),
        timestamp: headers['x-hubspot-request-timestamp'],
      }),
    sign: (body, at) => ({
      'x-hubspot-request-timestamp': String(at.getTime()),
      'x-hubspot-signature-v3': hubspot.Signature.getSignature('POST', 'v3', {
        clientSecret: hexSecret,
        url: hubspotUrl,
        requestBody: body,
        timestamp: at.getTime(),
      }),
    }),
    disagreements: { text: true, future: everyAhead, laxNumbers: true },
  },
  {
    sdk: '@hubspot/api-client@13.5.0 (v2)',
    entry: entryOf('hubspot'),
    scheme: 1,
    secret: hexSecret,
    url: hubspotUrl,
    payload: [{ eventId: 1 }],
    headers: { 'x-hubspot-signature-version': 'v2' },
    accepts: ({ headers, body, url }) =>
      hubspot.Signature.isValid({
        signatureVersion: 'v2',
        signature: headers['x-hubspot-signature'],
        clientSecret: hexSecret,
        method: 'POST',
        url,
        requestBody: text(body),
      }),
    disagreements: { text: true },
  },
  {
    sdk: '@hubspot/api-client@13.5.0 (v1)',
    entry: entryOf('hubspot'),
    scheme: 2,
    secret: hexSecret,
    url: hubspotUrl,
    payload: [{ eventId: 1 }],
    headers: { 'x-hubspot-signature-version': 'v1' },
    accepts: ({ headers, body }) =>
      hubspot.Signature.isValid({
        signatureVersion: 'v1',
        signature: headers['x-hubspot-signature'],
        clientSecret: hexSecret,
        requestBody: text(body),
      }),
    disagreements: { text: true },
  },
  {
    sdk: '@workos-inc/node@8.13.0',
    entry: entryOf('workos'),
    secret: hexSecret,
    accepts: ({ headers, body }) =>
      workosClient.webhooks.verifyHeader({
        payload: json(body),
        sigHeader: headers['workos-signature'],
        secret: hexSecret,
      }),
    disagreements: {
      laxEncoding: true,
      reserialises: true,
      text: true,
      future: [299, ...everyAhead],
      laxNumbers: true,
      repeated: true,
    },
  },
  {
    sdk: 'razorpay@2.9.8',
    entry: entryOf('razorpay'),
    secret: hexSecret,
    accepts: ({ headers, body }) =>
      Razorpay.validateWebhookSignature(text(body), headers['x-razorpay-signature'], hexSecret),
    disagreements: { text: true },
  },
  {
    sdk: '@adyen/api-library@32.1.0 (platform)',
    entry: entryOf('adyen'),
    scheme: 1,
    secret: hexSecret,
    accepts: ({ headers, body }) =>
      adyen.validateHMACSignature(hexSecret, headers.hmacsignature, text(body)),
    sign: (body) => ({ hmacsignature: adyen.calculateHmac(body, hexSecret) }),
    disagreements: { text: true, laxEncoding: true },
  },
  {
    sdk: '@adyen/api-library@32.1.0 (standard)',
    entry: entryOf('adyen'),
    secret: hexSecret,
    payload: {
      live: 'false',
      notificationItems: [
        {
          NotificationRequestItem: {
            pspReference: '7914073381342284',
            merchantAccountCode: 'TestMerchant',
            merchantReference: 'Test:Payment\\1',
            amount: { value: 1130, currency: 'EUR' },
            eventCode: 'AUTHORISATION',
            success: 'true',
          },
        },
      ],
    },
    accepts({ body }) {
      const { notificationItems } = Object(json(body))
      return adyen.validateHMAC(notificationItems[0].NotificationRequestItem, hexSecret)
    },
    disagreements: { reserialises: true, laxEncoding: true },
  },
  {
    sdk: 'box-node-sdk@10.12.0',
    entry: entryOf('box'),
    secret: 'SamplePrimaryKey',
    headers: { 'box-signature-version': '1', 'box-signature-algorithm': 'HmacSHA256' },
    accepts: ({ headers, body }) =>
      WebhooksManager.validateMessage(text(body), headers, 'SamplePrimaryKey'),
    disagreements: {
      text: true,
      laxEncoding: true,
      laxNumbers: true,
      stricterFuture: [1, 4, 299, 301],
    },
  },
  {
    sdk: '@notionhq/client@5.26.0',
    entry: entryOf('notion'),
    secret: hexSecret,
    accepts: ({ headers, body }) =>
      notion.verifyWebhookSignature({
        body: Buffer.from(body),
        signature: headers['x-notion-signature'],
        verificationToken: hexSecret,
      }),
    sign: async (body) => ({
      'x-notion-signature': await notion.signWebhookPayload({
        body,
        verificationToken: hexSecret,
      }),
    }),
  },
  {
    sdk: '@contentful/node-apps-toolkit@3.16.1',
    entry: entryOf('contentful'),
    secret: hexSecret,
    url: 'https://hooks.example.test/in?x=1&y=é',
    headers: {
      'x-contentful-signed-headers':
        'content-type,x-contentful-signed-headers,x-contentful-timestamp',
    },
    accepts: ({ headers, body, url }) =>
      contentful.verifyRequest(
        hexSecret,
        {
          method: 'POST',
          path: url.slice('https://hooks.example.test'.length),
          headers,
          body: text(body),
        },
        30,
      ),
    sign: (body, at) =>
      contentful.signRequest(
        hexSecret,
        {
          method: 'POST',
          path: '/in?x=1&y=é',
          headers: { 'content-type': 'application/json' },
          body,
        },
        at.getTime(),
      ),
    disagreements: {
      text: true,
      future: [60, 299, ...everyAhead],
      laxNumbers: true,
    },
  },
  {
    sdk: '@twurple/eventsub-http@8.1.4',
    entry: entryOf('twitch'),
    secret: hexSecret,
    accepts: ({ headers, body }) =>
      Reflect.apply(
        Reflect.get(Object.getPrototypeOf(EventSubHttpListener.prototype), '_verifyData'),
        { _secret: hexSecret },
        [
          headers['twitch-eventsub-message-id'],
          headers['twitch-eventsub-message-timestamp'],
          text(body),
          headers['twitch-eventsub-message-signature'],
        ],
      ),
    disagreements: {
      text: true,
      past: [3600, 31_536_000],
      future: [3600, 31_536_000],
      laxNumbers: true,
      laxEncoding: true,
    },
  },
  {
    sdk: '@mux/mux-node@15.3.0',
    entry: entryOf('mux'),
    secret: hexSecret,
    accepts: async ({ headers, body }) => {
      await muxClient.webhooks.verifySignature(text(body), headers, hexSecret)
      return true
    },
    disagreements: { repeated: true, text: true, future: everyAhead, laxNumbers: true },
  },
  {
    sdk: 'telnyx@7.24.0',
    entry: entryOf('telnyx'),
    secret: edRaw.toString('base64'),
    privateKey: ed.privateKey.export(pem).toString(),
    accepts: async ({ headers, body }) =>
      telnyxClient.webhooks.unwrap(text(body), { headers: { ...headers } }),
    disagreements: { laxEncoding: true, text: true },
  },
  {
    sdk: 'orb-billing@6.11.0',
    entry: entryOf('orb'),
    secret: hexSecret,
    accepts: async ({ headers, body }) => {
      await orbClient.webhooks.verifySignature(text(body), headers, hexSecret)
      return true
    },
    disagreements: { text: true, laxNumbers: true },
  },
  {
    sdk: 'pusher@5.3.4',
    entry: entryOf('pusher'),
    secret: `key:${hexSecret}`,
    accepts: ({ headers, body }) =>
      pusherClient.webhook({ headers, rawBody: text(body) }).isValid(),
    disagreements: { text: true },
  },
  {
    sdk: 'coinbase-commerce-node@1.0.4',
    entry: entryOf('coinbase-commerce'),
    secret: hexSecret,
    accepts({ headers, body }) {
      coinbase.Webhook.verifySigHeader(text(body), headers['x-cc-webhook-signature'], hexSecret)
      return true
    },
    disagreements: { text: true, laxEncoding: true },
  },
  {
    sdk: 'livekit-server-sdk@2.19.2',
    entry: entryOf('livekit'),
    secret: `APItest:${hexSecret}`,
    event: 'room_started',
    accepts: async ({ headers, body }) =>
      new livekit.WebhookReceiver('APItest', hexSecret).receive(text(body), headers.authorization),
    disagreements: { text: true, laxEncoding: true },
  },
  {
    sdk: 'messagebird@4.0.1',
    entry: entryOf('messagebird'),
    secret: hexSecret,
    url: 'https://hooks.example.test/mb?foo=bar',
    accepts: ({ headers, body, url }) =>
      messagebird.verify(
        url,
        Buffer.from(body),
        headers['messagebird-signature-jwt'],
        Buffer.from(hexSecret),
      ),
    disagreements: { laxEncoding: true },
  },
  {
    sdk: 'braintree@3.40.0',
    entry: entryOf('braintree'),
    secret: 'public:private',
    payload: {},
    accepts: async ({ body }) => {
      const form = new URLSearchParams(text(body))
      try {
        await gateway.webhookNotification.parse(form.get('bt_signature'), form.get('bt_payload'))
      } catch (error) {
        // It knows only notifications of its own; the signature is judged before.
        if (Reflect.get(Object(error), 'type') === 'invalidSignatureError') throw error
      }
      return true
    },
  },
  {
    sdk: 'sns-validator@0.3.5',
    entry: entryOf('aws-sns'),
    event: 'Notification',
    secret: 'arn:aws:sns:us-east-1:1:topic',
    privateKey: rsaPrivate,
    keys: () => rsaPublic,
    accepts: ({ body }) =>
      new Promise((resolve, reject) => {
        new SnsValidator().validate(text(body), (error: unknown, message: unknown) =>
          error ? reject(error) : resolve(message),
        )
      }),
    disagreements: { reserialises: true, laxEncoding: true, text: true },
  },
  {
    sdk: 'google-auth-library@10.9.1',
    entry: entryOf('google-pubsub'),
    secret: 'https://hooks.example.test/push push@p.iam.gserviceaccount.com',
    privateKey: rsaPrivate,
    keys: () => rsaPublic,
    accepts: ({ headers }) =>
      new google.OAuth2Client().verifySignedJwtWithCertsAsync(
        (headers.authorization ?? '').replace(/^Bearer /, ''),
        { k1: rsaPublic },
        'https://hooks.example.test/push',
        ['https://accounts.google.com', 'accounts.google.com'],
      ),
    disagreements: { laxEncoding: true },
  },
  {
    sdk: 'grammy@1.46.0',
    entry: entryOf('telegram'),
    secret: hexSecret,
    event: 'message',
    payload: { update_id: 10_000 },
    accepts: async ({ headers, body }) => {
      const request = new Request('https://hooks.example.test', {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: Buffer.from(body),
      })
      const answer = await webhookCallback(bot, 'std/http', { secretToken: hexSecret })(request)
      return answer.status === 200
    },
  },
  {
    sdk: 'whatsapp-api-js@6.3.0',
    entry: entryOf('meta-whatsapp'),
    secret: hexSecret,
    accepts: ({ headers, body }) =>
      new WhatsAppAPI({ token: 't', appSecret: hexSecret, v: 'v24.0' }).verifyRequestSignature(
        text(body),
        headers['x-hub-signature-256'],
      ),
    disagreements: { repeated: true, laxEncoding: true, text: true },
  },
  {
    sdk: '@zoom/rivet@0.4.0',
    entry: entryOf('zoom'),
    secret: hexSecret,
    accepts: ({ headers, body }) => zoomAccepts(headers, text(body)),
    disagreements: {
      reserialises: true,
      text: true,
      past: everyAge,
      future: everyAhead,
      laxNumbers: true,
    },
  },
  second('lemonsqueezy', 'lemon-squeezy'),
  second('woocommerce', 'woocommerce'),
  second('sentry', 'sentry'),
  second('doppler', 'doppler'),
  second('dodopayments', 'dodo-payments', whsec, { laxNumbers: true, dollars: true }),
]

function paramsOf(form: string): Record<string, string | readonly string[]> {
  const params = new URLSearchParams(form)
  return Object.fromEntries(
    [...new Set(params.keys())].map((name) => {
      const values = params.getAll(name)
      return [name, values.length === 1 ? (values[0] ?? '') : values]
    }),
  )
}

async function zoomAccepts(
  headers: Readonly<Record<string, string>>,
  body: string,
): Promise<boolean> {
  const receiver = new AwsLambdaReceiver({ webhooksSecretToken: hexSecret })
  receiver.init({ eventEmitter: { emit: async () => {} } })
  const answer = await receiver.start()({ body, headers, isBase64Encoded: false }, {})
  return answer.statusCode === 200
}

/** SNS's certificate, in place of the one on its host. */
export const snsCertificateKey: string = createPublicKey(createPrivateKey(rsaPrivate))
  .export({ type: 'spki', format: 'pem' })
  .toString()
