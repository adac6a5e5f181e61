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
  return values.flatMap((value) => {
    if (value.startsWith(prefix)) return [value.slice(prefix.length)]
    return bare ? [value] : []
  })
}
