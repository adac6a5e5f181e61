/** From the bytes of a body to what they say. Only ever called for what is verified, or for a handshake. */
import type { BodyKind, Provider } from './provider.ts'

export interface DecodedBody {
  readonly payload: unknown
  /** False when the bytes are nothing that the entry's sender writes; `payload` is then undefined. */
  readonly readable: boolean
}

/**
 * What was verified as a form is read as one, and as nothing else. Otherwise the bytes alone decide, for no sender signs
 * the content type: whoever has seen a signed JSON body could send it again as a form, and a text inside it would be the
 * id and the payload.
 */
export function decodeBody(
  {
    formField,
    formFields = formField === undefined,
    jsonLines = false,
  }: Pick<Provider, 'formField' | 'formFields' | 'jsonLines'>,
  body: Uint8Array,
  kind?: BodyKind,
): DecodedBody {
  try {
    // Those who sign names and values decode them like this: without an error, the byte order mark a part of the name.
    if (kind === 'form') return formOf(new TextDecoder('utf-8', { ignoreBOM: true }).decode(body))
    const text = new TextDecoder('utf-8', { fatal: true }).decode(body)
    const read = jsonLines ? listOf(text) : readJson(text)
    if (read !== undefined) return { payload: read.value, readable: true }
    return kind === 'json' || !isForm(text) ? unreadable : formOf(text)
  } catch {
    return unreadable
  }

  function formOf(text: string): DecodedBody {
    const form = new URLSearchParams(text)
    const json = formField === undefined ? null : form.get(formField)
    if (json !== null) return { payload: JSON.parse(json), readable: true }
    return formFields ? { payload: fieldsOf(form), readable: true } : unreadable
  }
}

const unreadable: DecodedBody = { payload: undefined, readable: false }

function readJson(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) }
  } catch {
    return undefined
  }
}

function listOf(text: string): { readonly value: readonly unknown[] } | undefined {
  const whole = readJson(text)
  if (whole !== undefined)
    return { value: Array.isArray(whole.value) ? whole.value : [whole.value] }
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  const values = lines.map(readJson)
  if (values.length === 0 || values.includes(undefined)) return undefined
  return { value: values.map((line) => line?.value) }
}

// A form begins with a name and has no blanks; JSON that was cut off, XML and prose are none.
function isForm(text: string): boolean {
  return /^[^\s=&{[<"][^\s=&]*=\S*\s*$/.test(text)
}

// A name that stands there twice has a list of values.
function fieldsOf(form: URLSearchParams): Readonly<Record<string, string | readonly string[]>> {
  const byName = new Map<string, string | string[]>()
  for (const [name, value] of form) {
    const known = byName.get(name)
    if (known === undefined) byName.set(name, value)
    else if (typeof known === 'string') byName.set(name, [known, value])
    else known.push(value)
  }
  return Object.fromEntries(byName)
}
