export type { PostgresClient, QueryAnswer } from './client.ts'
export { type PostgresStoreOptions, postgresStore, schemaSql } from './postgres-store.ts'
