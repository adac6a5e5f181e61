import { optionError } from './errors.ts'
import { bytesOption } from './options.ts'
import { type ProviderName, providerOf } from './providers/catalogue.ts'
import { importSecret, sign } from './providers/interpret.ts'
import type { Provider } from './providers/provider.ts'

/**
 * The headers with which a provider signs these bytes: for tests, and for services that send webhooks.
 * @throws WebhookInboxError `ERR_OPTION` for a blank secret, an unknown provider or a body that is not bytes
 */
export async function signatureHeaders(
  provider: ProviderName | Provider,
  message: { readonly secret: string; readonly body: Uint8Array },
): Promise<Record<string, string>> {
  const entry = providerOf(provider)
  if (typeof message.secret !== 'string' || message.secret.trim() === '') {
    throw optionError(`signatureHeaders: "secret" is missing or blank.`)
  }
  const key = await importSecret(entry, message.secret)
  const body = bytesOption('signatureHeaders', 'body', message.body)
  return { [entry.signature.header]: await sign(entry, key, body) }
}
