import { entry } from '../define.ts'
import { telegramEvent } from '../functions/telegram.ts'
import type { Provider } from '../provider.ts'
import { day } from './units.ts'

/** Telegram. Its token covers no byte of the body. */
export const telegram: Provider = /* @__PURE__ */ entry(() => ({
  name: 'telegram',
  title: 'Telegram Bot API',
  signature: { scheme: 'token', header: 'x-telegram-bot-api-secret-token' },
  deliveryId: { body: 'update_id' },
  event: telegramEvent,
  retriesByItself: true,
  retentionMs: 2 * day,
  secretIs: 'the secret_token of setWebhook',
  sources: [
    {
      url: 'npm:grammy@1.46.0 out/convenience/webhook.js',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId', 'event'],
    },
    {
      url: 'https://core.telegram.org/bots/api#setwebhook',
      asOf: '2026-12-01',
      facts: ['signature', 'retries'],
    },
    {
      url: 'https://github.com/tdlib/telegram-bot-api/blob/master/telegram-bot-api/WebhookActor.cpp',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId', 'retries'],
    },
    {
      url: 'https://core.telegram.org/bots/api',
      asOf: '2026-12-01',
      facts: ['redelivery'],
    },
  ],
}))
