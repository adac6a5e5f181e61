declare module 'cloudflare:workers' {
  /** The bindings of this Worker. */
  export const env: { readonly WEBHOOK_SECRET: string }
}
