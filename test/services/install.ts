/** Finding the servers that tests need, and installing them where that is possible. */
import { execFile } from 'node:child_process'
import { accessSync, constants, existsSync, rmSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** The full path of a program, looked for on PATH and where Debian keeps servers. */
export function findProgram(name: string): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']
  return folders.map((folder) => join(folder, name)).find(isExecutable)
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/**
 * The path of the first of `programs` that is there; as root on Debian the package is installed first when none is.
 * @throws Error that says what to install
 */
export async function requireProgram(
  programs: readonly string[],
  debianPackage: string,
): Promise<string> {
  const found = firstOf(programs)
  if (found !== undefined) return found
  const apt = findProgram('apt-get')
  if (apt !== undefined && process.getuid?.() === 0) await install(apt, debianPackage)
  const installed = firstOf(programs)
  if (installed !== undefined) return installed
  throw new Error(
    `The tests need ${programs.join(' or ')} on PATH. On Debian or Ubuntu: apt-get install ${debianPackage}`,
  )
}

function firstOf(programs: readonly string[]): string | undefined {
  for (const name of programs) {
    const path = findProgram(name)
    if (path !== undefined) return path
  }
  return undefined
}

async function install(apt: string, debianPackage: string): Promise<void> {
  // Test files run in several processes: apt works for one at a time.
  await locked(join(tmpdir(), 'webhook-inbox-apt.lock'), async () => {
    // Debian starts a service that it installs, on its default port: this answer keeps it from that.
    const policy = '/usr/sbin/policy-rc.d'
    const isOurs = !existsSync(policy)
    if (isOurs) writeFileSync(policy, '#!/bin/sh\nexit 101\n', { mode: 0o755 })
    try {
      const args = ['install', '-y', '--no-install-recommends', debianPackage]
      const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
      await run(apt, args, { env }).catch(async () => {
        await run(apt, ['update'], { env })
        await run(apt, args, { env })
      })
    } catch (error) {
      throw new Error(`apt-get could not install ${debianPackage}.`, { cause: error })
    } finally {
      if (isOurs) rmSync(policy, { force: true })
    }
  })
}

async function locked(path: string, work: () => Promise<void>): Promise<void> {
  const deadlineMs = Date.now() + 300_000
  for (;;) {
    try {
      const file = await open(path, 'wx')
      try {
        await work()
      } finally {
        await file.close()
        rmSync(path, { force: true })
      }
      return
    } catch (error) {
      if (!isTaken(error)) throw error
      if (Date.now() > deadlineMs)
        throw new Error(`Another run has been installing since long; remove ${path} if none is.`)
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
  }
}

function isTaken(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EEXIST'
}
