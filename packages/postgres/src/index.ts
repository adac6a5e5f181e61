export type { PostgresClient, QueryAnswer, SqlValue } from './client.ts'
export { type PostgresStoreOptions, postgresStore, schemaSql } from './postgres-store.ts'
