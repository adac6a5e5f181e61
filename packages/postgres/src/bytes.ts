/** The bytes of a batch as one parameter, so that every driver passes them as what they are. */

export interface Packed {
  /** null when there is no piece at all. */
  readonly bytes: Uint8Array | null
  /** Where each piece begins, counted from 1 as `substr` does; undefined where there is none. */
  readonly starts: readonly (number | undefined)[]
  readonly lengths: readonly (number | undefined)[]
}

export function pack(pieces: readonly (Uint8Array | undefined)[]): Packed {
  const lengths = pieces.map((piece) => piece?.length)
  const starts: (number | undefined)[] = []
  let total = 0
  for (const piece of pieces) {
    starts.push(piece === undefined ? undefined : total + 1)
    total += piece?.length ?? 0
  }
  if (lengths.every((length) => length === undefined)) return { bytes: null, starts, lengths }
  const bytes = new Uint8Array(total)
  for (const [index, piece] of pieces.entries())
    if (piece !== undefined) bytes.set(piece, (starts[index] ?? 1) - 1)
  return { bytes, starts, lengths }
}
