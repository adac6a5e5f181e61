import { nearest, optionError } from '../errors.ts'
import { camel, entryOf } from './check.ts'
import * as entries from './entries/index.ts'
import type { Provider } from './provider.ts'

/** The names of the catalogue. */
export const providerNames = [
  'adyen',
  'airtable',
  'asana',
  'attio',
  'auth0',
  'auth0-logs',
  'autumn',
  'aws-sns',
  'azure-devops',
  'bird',
  'bitbucket',
  'box',
  'braintree',
  'buildkite',
  'calcom',
  'calendly',
  'circleci',
  'clerk',
  'coinbase-cdp',
  'coinbase-commerce',
  'contentful',
  'discord',
  'docusign',
  'dodo-payments',
  'doppler',
  'dropbox',
  'elevenlabs',
  'event-grid',
  'firecrawl',
  'fourthwall',
  'github',
  'gitlab',
  'granola',
  'heroku',
  'hookdeck',
  'hubspot',
  'infisical',
  'intercom',
  'jira',
  'kick',
  'langfuse',
  'lemon-squeezy',
  'line',
  'linear',
  'loops',
  'mailgun',
  'meta-whatsapp',
  'metronome',
  'mux',
  'notion',
  'okta',
  'openai',
  'orb',
  'paddle',
  'pagerduty',
  'paypal',
  'persona',
  'plain',
  'planetscale',
  'polar',
  'postmark',
  'pusher',
  'quickbooks',
  'razorpay',
  'replicate',
  'resend',
  'retell',
  'sanity',
  'sendgrid',
  'sentry',
  'shopify',
  'slack',
  'square',
  'standard-webhooks',
  'stripe',
  'supabase',
  'svix',
  'tailscale',
  'telegram',
  'telnyx',
  'twilio',
  'twitch',
  'typeform',
  'vapi',
  'vercel',
  'woocommerce',
  'workos',
  'xero',
  'zendesk',
  'zoom',
] as const

/** A name in the catalogue. */
export type ProviderName = (typeof providerNames)[number]

/** Every provider this library knows, by name. */
export const providers: Readonly<Record<ProviderName, Provider>> = /* @__PURE__ */ Object.freeze({
  adyen: entries.adyen,
  airtable: entries.airtable,
  asana: entries.asana,
  attio: entries.attio,
  auth0: entries.auth0,
  'auth0-logs': entries.auth0Logs,
  autumn: entries.autumn,
  'aws-sns': entries.awsSns,
  'azure-devops': entries.azureDevops,
  bird: entries.bird,
  bitbucket: entries.bitbucket,
  box: entries.box,
  braintree: entries.braintree,
  buildkite: entries.buildkite,
  calcom: entries.calcom,
  calendly: entries.calendly,
  circleci: entries.circleci,
  clerk: entries.clerk,
  'coinbase-cdp': entries.coinbaseCdp,
  'coinbase-commerce': entries.coinbaseCommerce,
  contentful: entries.contentful,
  discord: entries.discord,
  docusign: entries.docusign,
  'dodo-payments': entries.dodoPayments,
  doppler: entries.doppler,
  dropbox: entries.dropbox,
  elevenlabs: entries.elevenlabs,
  'event-grid': entries.eventGrid,
  firecrawl: entries.firecrawl,
  fourthwall: entries.fourthwall,
  github: entries.github,
  gitlab: entries.gitlab,
  granola: entries.granola,
  heroku: entries.heroku,
  hookdeck: entries.hookdeck,
  hubspot: entries.hubspot,
  infisical: entries.infisical,
  intercom: entries.intercom,
  jira: entries.jira,
  kick: entries.kick,
  langfuse: entries.langfuse,
  'lemon-squeezy': entries.lemonSqueezy,
  line: entries.line,
  linear: entries.linear,
  loops: entries.loops,
  mailgun: entries.mailgun,
  'meta-whatsapp': entries.metaWhatsapp,
  metronome: entries.metronome,
  mux: entries.mux,
  notion: entries.notion,
  okta: entries.okta,
  openai: entries.openai,
  orb: entries.orb,
  paddle: entries.paddle,
  pagerduty: entries.pagerduty,
  paypal: entries.paypal,
  persona: entries.persona,
  plain: entries.plain,
  planetscale: entries.planetscale,
  polar: entries.polar,
  postmark: entries.postmark,
  pusher: entries.pusher,
  quickbooks: entries.quickbooks,
  razorpay: entries.razorpay,
  replicate: entries.replicate,
  resend: entries.resend,
  retell: entries.retell,
  sanity: entries.sanity,
  sendgrid: entries.sendgrid,
  sentry: entries.sentry,
  shopify: entries.shopify,
  slack: entries.slack,
  square: entries.square,
  'standard-webhooks': entries.standardWebhooks,
  stripe: entries.stripe,
  supabase: entries.supabase,
  svix: entries.svix,
  tailscale: entries.tailscale,
  telegram: entries.telegram,
  telnyx: entries.telnyx,
  twilio: entries.twilio,
  twitch: entries.twitch,
  typeform: entries.typeform,
  vapi: entries.vapi,
  vercel: entries.vercel,
  woocommerce: entries.woocommerce,
  workos: entries.workos,
  xero: entries.xero,
  zendesk: entries.zendesk,
  zoom: entries.zoom,
})

/** Names whose entries need `jose`, and so are imported from `@webhook-inbox/core/jwt`. */
export const jwtProviderNames = [
  'google-pubsub',
  'livekit',
  'messagebird',
  'netlify',
  'plaid',
] as const

/** The catalogue entry of that name, or undefined. */
export function getProvider(name: string): Provider | undefined {
  return isProviderName(name) ? providers[name] : undefined
}

function isProviderName(name: string): name is ProviderName {
  return Object.hasOwn(providers, name)
}

/**
 * The entry for the option `provider`.
 * @throws WebhookInboxError `ERR_OPTION` for a name that is not in the catalogue, with the nearest one, or a wrong entry
 */
export function providerOf(provider: unknown): Provider {
  if (provider === undefined || provider === null) {
    throw optionError(
      `"provider" is missing. Pass a name, for instance provider: 'github', or an entry.`,
    )
  }
  if (typeof provider !== 'string') return entryOf(provider)
  const found = getProvider(provider)
  if (found !== undefined) return found
  const near = nearest(provider, [...providerNames, ...jwtProviderNames])
  const jwtName = jwtProviderNames.find((name) => name === provider)
  if (jwtName !== undefined) {
    const name = camel(jwtName)
    throw optionError(
      `Provider "${jwtName}" signs with JSON Web Tokens, which need "jose". Install it, import { ${name} } from '@webhook-inbox/core/jwt', and pass provider: ${name}.`,
    )
  }
  throw optionError(
    `Unknown provider "${provider}".${near === undefined ? '' : ` Did you mean "${near}"?`} Known: ${providerNames.join(', ')}; with '@webhook-inbox/core/jwt': ${jwtProviderNames.join(', ')}. For another sender pass what defineProvider() makes.`,
  )
}
