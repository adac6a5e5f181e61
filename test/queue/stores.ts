/** The stores of these tests, by a text that a child process gets: what they keep, and where effects are written. */
import { DatabaseSync } from 'node:sqlite'
import type { ClaimedDelivery, Store } from '@webhook-inbox/core'
import { postgresStore } from '@webhook-inbox/postgres'
import { redisStore } from '@webhook-inbox/redis'
import { sqliteStore } from '@webhook-inbox/sqlite'
import { Redis } from 'ioredis'
import { openPool } from '../services/postgres.ts'

export type StoreKind = 'sqlite' | 'postgres' | 'redis'

/** A store and a place for effects beside it. */
export interface Place {
  readonly store: Store
  /**
   * Writes the effect of a delivery and completes it in one transaction; `between` runs before the commit. Redis has no
   * part in a transaction: there the effect is written once for an idempotency key, and the worker completes.
   */
  effectAndComplete(webhook: ClaimedDelivery, between?: () => void): Promise<void>
  /** Writes the effect alone. */
  effect(webhook: ClaimedDelivery): Promise<void>
  /** How often the effect of a delivery was written. */
  effectsOf(deliveryId: string): Promise<number>
  close(): Promise<void>
}

/** Opens a store on `address`: a file, or a connection string. The tables have to be there but for `setup`. */
export async function openPlace(kind: StoreKind, address: string): Promise<Place> {
  if (kind === 'sqlite') return openSqlite(address)
  return kind === 'postgres' ? openPostgres(address) : openRedis(address)
}

async function openRedis(address: string): Promise<Place> {
  const url = new URL(address)
  const prefix = url.searchParams.get('prefix') ?? 'webhook-inbox'
  const client = new Redis(Number(url.port), url.hostname)
  const store = redisStore({ client, prefix, onWarning: () => {} })
  return {
    store,
    async effectAndComplete(webhook, between) {
      await client.hsetnx(`${prefix}-effects-${webhook.id}`, webhook.idempotencyKey('effect'), '1')
      between?.()
    },
    async effect(webhook) {
      await client.hset(`${prefix}-effects-${webhook.id}`, crypto.randomUUID(), '1')
    },
    effectsOf: (deliveryId) => client.hlen(`${prefix}-effects-${deliveryId}`),
    async close() {
      await store.close()
      client.disconnect()
    },
  }
}

function openSqlite(path: string): Place {
  const store = sqliteStore({ path })
  const database = new DatabaseSync(path)
  database.exec('PRAGMA busy_timeout = 20000')
  database.exec('CREATE TABLE IF NOT EXISTS effects (delivery TEXT NOT NULL)')
  database.exec('CREATE INDEX IF NOT EXISTS effects_delivery ON effects (delivery)')
  const insert = database.prepare('INSERT INTO effects VALUES (?)')
  const count = database.prepare('SELECT count(*) AS effects FROM effects WHERE delivery = ?')
  return {
    store,
    async effectAndComplete(webhook, between) {
      database.exec('BEGIN IMMEDIATE')
      try {
        insert.run(webhook.id)
        await webhook.completeIn(database)
        between?.()
        database.exec('COMMIT')
      } catch (error) {
        database.exec('ROLLBACK')
        throw error
      }
    },
    async effect(webhook) {
      insert.run(webhook.id)
    },
    async effectsOf(deliveryId) {
      return Number(count.get(deliveryId)?.effects)
    },
    async close() {
      await store.close()
      database.close()
    },
  }
}

async function openPostgres(address: string): Promise<Place> {
  const pool = openPool(address, 4)
  const store = postgresStore({ pool, onWarning: () => {} })
  await store.setup()
  await pool.query('CREATE TABLE IF NOT EXISTS effects (delivery text NOT NULL)')
  await pool.query('CREATE INDEX IF NOT EXISTS effects_delivery ON effects (delivery)')
  return {
    store,
    async effectAndComplete(webhook, between) {
      const client = await pool.connect()
      try {
        await client.query('BEGIN')
        await client.query('INSERT INTO effects VALUES ($1)', [webhook.id])
        await webhook.completeIn(client)
        between?.()
        await client.query('COMMIT')
      } catch (error) {
        await client.query('ROLLBACK')
        throw error
      } finally {
        client.release()
      }
    },
    async effect(webhook) {
      await pool.query('INSERT INTO effects VALUES ($1)', [webhook.id])
    },
    async effectsOf(deliveryId) {
      const { rows } = await pool.query(
        'SELECT count(*)::integer AS effects FROM effects WHERE delivery = $1',
        [deliveryId],
      )
      return Number(rows[0]?.effects)
    },
    async close() {
      await store.close()
      await pool.end()
    },
  }
}
