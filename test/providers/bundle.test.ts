import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { providers } from '@webhook-inbox/core'
import { rolldown } from 'rolldown'
import { afterAll, describe, expect, it } from 'vitest'

// Inside this package, so that imports find what a reader would have installed.
mkdirSync(join(import.meta.dirname, '../.tmp'), { recursive: true })
const folder = mkdtempSync(join(import.meta.dirname, '../.tmp/bundle-'))
afterAll(() => rmSync(folder, { recursive: true }))

async function bundleOf(source: string): Promise<string> {
  const input = join(folder, 'input.ts')
  writeFileSync(input, source)
  const bundle = await rolldown({
    input,
    platform: 'browser',
    resolve: { conditionNames: ['@webhook-inbox/source', 'workerd', 'import', 'default'] },
    // A missing peer would be bundled as a warning; nothing here may need one.
    external: ['hono'],
  })
  const { output } = await bundle.generate({ minify: true })
  await bundle.close()
  return output.map((chunk) => ('code' in chunk ? chunk.code : '')).join('\n')
}

/** The providers whose entry is in a bundle: each names a header or a source of its own. */
function providersIn(code: string): readonly string[] {
  return Object.values(providers)
    .filter(({ sources = [], name }) =>
      sources.some(({ url }) => code.includes(url) && code.includes(name)),
    )
    .map(({ name }) => name)
}

const isJose = (code: string): boolean => code.includes('ERR_JWT_EXPIRED')

describe('a bundle', () => {
  it.each(['@webhook-inbox/core', '@webhook-inbox/hono'])(
    'of githubWebhook of %s holds GitHub alone',
    async (name) => {
      const code = await bundleOf(`export { githubWebhook } from '${name}'`)
      expect(providersIn(code)).toEqual(['github'])
      expect(isJose(code)).toBe(false)
      expect(code).not.toContain('x-shopify')
    },
  )

  it('of an entry holds that entry alone', async () => {
    const code = await bundleOf(
      `import { providerWebhook } from '@webhook-inbox/hono'
       import { shopify } from '@webhook-inbox/core/providers'
       export const guard = (options) => providerWebhook({ ...options, provider: shopify })`,
    )
    expect(providersIn(code)).toEqual(['shopify'])
    expect(isJose(code)).toBe(false)
    expect(code).not.toContain('bodySHA256')
  })

  it('of verifyProvider with an entry of its own holds no other', async () => {
    const code = await bundleOf(
      `export { verifyProvider, defineProvider } from '@webhook-inbox/core'`,
    )
    expect(providersIn(code)).toEqual([])
  })

  it('of all names holds all entries, and no jose', async () => {
    const code = await bundleOf(`export { webhook } from '@webhook-inbox/core'`)
    expect(providersIn(code)).toHaveLength(Object.keys(providers).length)
    expect(isJose(code)).toBe(false)
  })

  it('of a provider that signs with tokens holds jose', async () => {
    const code = await bundleOf(`export { plaid } from '@webhook-inbox/core/jwt'`)
    expect(isJose(code)).toBe(true)
  })

  it('of one provider weighs less than half of all', async () => {
    const github = (await bundleOf(`export { githubWebhook } from '@webhook-inbox/core'`)).length
    const all = (await bundleOf(`export { webhook } from '@webhook-inbox/core'`)).length
    expect(github).toBeLessThan(all / 2)
  })
})
