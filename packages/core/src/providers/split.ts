/** The values in a header that may hold several: those with the prefix, without it. */
export function splitValues(
  header: string,
  {
    separator,
    prefix = '',
    bare = false,
  }: {
    readonly separator?: string | undefined
    readonly prefix?: string | undefined
    readonly bare?: boolean | undefined
  },
): readonly string[] {
  const values =
    separator === undefined ? [header] : header.split(separator).map((one) => one.trim())
  // A value without its prefix only where it is the one.
  if (bare && values.length === 1 && !header.startsWith(prefix)) return values
  return values.flatMap((value) => (value.startsWith(prefix) ? [value.slice(prefix.length)] : []))
}
