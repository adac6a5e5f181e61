import { it } from 'vitest'
import { postgresTargets } from '../../../test/services/postgres.ts'
import { raceProcesses } from './process-race.ts'

// The newest version; the others are in processes.long.test.ts.
for (const target of postgresTargets().slice(-1)) {
  it(`lets 24 processes race on ${target.name}: one wins each key and each expired lease`, async () => {
    const server = await target.start()
    try {
      await raceProcesses(server)
    } finally {
      await server.stop()
    }
  }, 120_000)
}
