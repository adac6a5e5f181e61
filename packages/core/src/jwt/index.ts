/** Providers that sign with JSON Web Tokens. Needs `jose`, which nothing else of this package does. */
export { googlePubsub, livekit, messagebird, netlify, plaid } from '../providers/entries/jwt.ts'
export { jwtHeaders } from './sign-jwt.ts'
export { verifyJwt } from './verify-jwt.ts'
