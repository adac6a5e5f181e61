/** From the bytes of a body to what they say. Only ever called for what is verified, or for a handshake. */
import type { HeaderMap } from '../delivery.ts'
import { mediaType } from '../headers.ts'
import type { Provider } from './provider.ts'

export interface DecodedBody {
  readonly payload: unknown
  /** False when the bytes are not what the content type says; `payload` is then undefined. */
  readonly readable: boolean
}

export function decodeBody(
  {
    formField,
    formFields = formField === undefined,
    jsonLines = false,
  }: Pick<Provider, 'formField' | 'formFields' | 'jsonLines'>,
  headers: HeaderMap,
  body: Uint8Array,
): DecodedBody {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(body)
    if (mediaType(headers) !== 'application/x-www-form-urlencoded')
      return { payload: jsonLines ? listOf(text) : JSON.parse(text), readable: true }
    const form = new URLSearchParams(text)
    const json = formField === undefined ? null : form.get(formField)
    if (json !== null) return { payload: JSON.parse(json), readable: true }
    return formFields ? { payload: fieldsOf(form), readable: true } : unreadable
  } catch {
    return unreadable
  }
}

const unreadable: DecodedBody = { payload: undefined, readable: false }

function listOf(text: string): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) ? value : [value]
  } catch {
    const lines = text.split('\n').filter((line) => line.trim() !== '')
    return lines.map((line): unknown => JSON.parse(line))
  }
}

// A name that stands there twice has a list of values.
function fieldsOf(form: URLSearchParams): Readonly<Record<string, string | readonly string[]>> {
  return Object.fromEntries(
    [...new Set(form.keys())].map((name) => {
      const values = form.getAll(name)
      return [name, values.length === 1 ? (values[0] ?? '') : values]
    }),
  )
}
