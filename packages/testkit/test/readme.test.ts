import { readFileSync } from 'node:fs'
import { adapterGuaranteeTitles, storeGuaranteeTitles } from '@webhook-inbox/testkit'
import { expect, it } from 'vitest'

it('shows every guarantee with its number, and no other', () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
  const shown = [...readme.matchAll(/^\| ([SA]\d+) *\| (.*?) *\|/gm)].map(([, id, title]) => [
    id,
    title,
  ])
  const titles = { ...storeGuaranteeTitles, ...adapterGuaranteeTitles }
  expect(shown).toEqual(Object.entries(titles))
})
