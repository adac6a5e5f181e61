import fc from 'fast-check'
import { expect, it } from 'vitest'
import {
  arrayLiteral,
  escapeText,
  fingerprintCode,
  fingerprintOf,
  tokenNumber,
  unescapeText,
} from '../src/encode.ts'

const anyText = fc.string({ unit: 'binary', maxLength: 40 })
// Also what no UTF-8 can say.
const anyUnits = fc
  .array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 20 })
  .map((units) => String.fromCharCode(...units))

it('brings every text through columns that hold neither NUL nor lone surrogates', () => {
  fc.assert(
    fc.property(fc.oneof(anyText, anyUnits), (text) => {
      const escaped = escapeText(text)
      expect(unescapeText(escaped)).toBe(text)
      expect(escaped).not.toContain('\u0000')
      expect(/\p{Surrogate}/u.test(escaped)).toBe(false)
    }),
  )
  expect(escapeText('plain ☕')).toBe('plain ☕')
})

it('keeps the first 128 bits of a SHA-256, and other fingerprints whole', () => {
  const digest = '0123456789abcdef'.repeat(4)
  expect(fingerprintOf(fingerprintCode(digest))).toBe(digest.slice(0, 32))
  fc.assert(
    fc.property(anyText, anyText, (one, other) => {
      expect(fingerprintOf(fingerprintCode(one))).toBe(one)
      expect(fingerprintCode(one) === fingerprintCode(other)).toBe(one === other)
    }),
  )
  // As long as a digest when encoded.
  expect(fingerprintOf(fingerprintCode('fourteen chars'))).toBe('fourteen chars')
})

it('tells tokens apart by 64-bit numbers', () => {
  expect(tokenNumber('00000000000000010000000000000000')).toBe('1')
  expect(tokenNumber('ffffffffffffffff0000000000000000')).toBe('-1')
  const others = ['', 'a', 'b', 'ab', 'token-1', 'token-2', 'F'.repeat(32)]
  expect(new Set(others.map(tokenNumber)).size).toBe(others.length)
})

it('writes array literals', () => {
  expect(arrayLiteral(['a', undefined, 'null', 'NULL', '', 'b c', '"\\', '{,}', 7])).toBe(
    '{a,NULL,"null","NULL","","b c","\\"\\\\","{,}",7}',
  )
  expect(arrayLiteral([])).toBe('{}')
})
