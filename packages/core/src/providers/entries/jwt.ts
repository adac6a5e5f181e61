/** The entries whose requests are proved by a JSON Web Token. */
export { googlePubsub } from './google-pubsub.ts'
export { livekit } from './livekit.ts'
export { messagebird } from './messagebird.ts'
export { netlify } from './netlify.ts'
export { plaid } from './plaid.ts'
