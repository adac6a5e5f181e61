// Prisma by itself, with the file of the package's README. The packages of Prisma are 300 MB and matter to this test
// alone, so it installs them in a folder of its own.
import { execFile } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'
import { postgresStore } from '@webhook-inbox/postgres'
import { afterAll, beforeAll, it } from 'vitest'
import { onConnection, type PostgresServer, postgresTargets } from '../services/postgres.ts'
import { loadReadmeFile, makeFolder, type ReadmeFile } from './readme-file.ts'
import { pushesTable, tryHandler, tryStore } from './try-out.ts'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')
const folder = makeFolder('prisma')
let server: PostgresServer
let url: string

const schema = `
generator client {
  provider = "prisma-client"
  output   = "generated/prisma"
}
datasource db {
  provider = "postgresql"
}
model pushes {
  delivery String @id
}
`

beforeAll(async () => {
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }')
  writeFileSync(join(folder, 'schema.prisma'), schema)
  const install = ['install', '--ignore-scripts', '--no-audit', '--no-fund']
  const packages = ['prisma@7', '@prisma/client@7', '@prisma/adapter-pg@7', 'pg@8']
  await run('npm', [...install, ...packages], { cwd: folder })
  // Only migrations need the engine, which would be downloaded: any program may stand in its place here.
  const env = { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath }
  await run('node_modules/.bin/prisma', ['generate', '--schema=schema.prisma'], {
    cwd: folder,
    env: { ...env, PRISMA_HIDE_UPDATE_MESSAGE: '1', CHECKPOINT_DISABLE: '1' },
  })
  const target = postgresTargets().at(-1)
  if (target === undefined) throw new Error('No PostgreSQL is here.')
  server = await target.start()
  url = server.url(await server.createDatabase())
  await onConnection(url, (client) => client.query(pushesTable))
})
afterAll(async () => {
  await server?.stop()
  rmSync(folder, { recursive: true, force: true })
})

it('works on prisma', async () => {
  const added = `
export const [client, close] = [
  clientOf(prisma),
  async () => {
    await prisma.$disconnect()
    if (!pool.ended) await pool.end()
  },
]`
  const file = await loadReadmeFile<ReadmeFile>('prisma', url, { added, folder })
  try {
    await tryHandler(file.store, file.handler, async () => {
      const { rows } = await onConnection(url, (client) => client.query('SELECT FROM pushes'))
      return rows.length
    })
    const through = postgresStore({ pool: file.client, table: 'through_the_library' })
    await tryStore(through)
  } finally {
    await file.close()
  }
})

it('compiles, as the README shows it', async () => {
  const tsconfig = join(root, 'tsconfig.json')
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ extends: tsconfig, include: ['prisma.ts'] }),
  )
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  await run(process.execPath, [tsc, '-p', folder])
})
