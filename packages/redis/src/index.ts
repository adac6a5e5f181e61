export type { RedisClient } from './client.ts'
export { type RedisStoreOptions, type RedisWarning, redisStore } from './redis-store.ts'
