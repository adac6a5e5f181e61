import { type PostgresStoreOptions, postgresStore, schemaSql } from '@webhook-inbox/postgres'
import pg from 'pg'
import { describe, expect, it } from 'vitest'

const pool = { query: async () => ({ rows: [] }) }

/** The message with which options are refused; called as plain JavaScript can. */
function refusal(options: unknown): string {
  try {
    Reflect.apply(postgresStore, undefined, [options])
  } catch (error) {
    expect(error).toMatchObject({ code: 'ERR_OPTION' })
    return String(error)
  }
  throw new Error('The options had to be refused.')
}

describe('postgresStore', () => {
  it('says what to pass as "pool"', () => {
    expect(refusal(undefined)).toContain('postgresStore({ pool })')
    expect(refusal({})).toContain('new pg.Pool(')
    expect(refusal({ pool: null })).toContain('"pool" is missing')
    expect(refusal({ pool: 'postgres://localhost' })).toContain('not a connection string')
    expect(refusal({ pool: {} })).toContain('query(text, values)')
    expect(refusal(pool)).toContain('as an option')
  })

  it('refuses unknown and wrong options, and names the fix', () => {
    expect(refusal({ pool, tabel: 'x' })).toContain('Did you mean "table"?')
    for (const table of ['', '1a', 'a-b', 'a"b', 'x'.repeat(46), 5])
      expect(refusal({ pool, table })).toContain('"table" must be a name')
    expect(refusal({ pool, schema: 'a.b' })).toContain('"schema" must be a name')
    for (const timeoutMs of [0, -1, 1.5, Number.NaN, '5'])
      expect(refusal({ pool, timeoutMs })).toContain('"timeoutMs" must be a whole number')
    expect(refusal({ pool, onWarning: true })).toContain('"onWarning" must be a function')
    expect(() => schemaSql({ table: 'a b' })).toThrow('"table" must be a name')
  })

  it('listens to the errors of a pool that nobody listens to, until it is closed', async () => {
    const silent = new pg.Pool()
    const store = postgresStore({ pool: silent })
    expect(silent.listenerCount('error')).toBe(1)
    await store.close()
    await store.close()
    expect(silent.listenerCount('error')).toBe(0)
    const heard = new pg.Pool()
    heard.on('error', () => {})
    postgresStore({ pool: heard })
    expect(heard.listenerCount('error')).toBe(1)
    await silent.end()
    await heard.end()
  })

  it('is unavailable once closed, and when a client answers no rows', async () => {
    const options: PostgresStoreOptions = { pool }
    const store = postgresStore(options)
    await expect(store.stats()).rejects.toMatchObject({ code: 'ERR_STORE_UNAVAILABLE' })
    await store.close()
    await expect(store.stats()).rejects.toThrow('closed')
    const odd = postgresStore({ pool: { query: async () => JSON.parse('[]') } })
    await expect(odd.get({ provider: '', endpoint: '', deliveryId: '' })).rejects.toThrow('{ rows:')
  })
})
