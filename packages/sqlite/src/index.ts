export type { SqliteDatabase, SqliteStatement } from './driver.ts'
export { type SqliteStoreOptions, sqliteStore } from './sqlite-store.ts'
