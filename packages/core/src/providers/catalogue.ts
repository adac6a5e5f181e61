import { nearest, optionError } from '../errors.ts'
import { github } from './github.ts'
import type { Provider } from './provider.ts'

/** Every provider this library knows, by name. */
export const providers: { readonly github: Provider } = Object.freeze({ github })

/** A name in the catalogue. */
export type ProviderName = keyof typeof providers

/** The catalogue entry of that name, or undefined. */
export function getProvider(name: string): Provider | undefined {
  return isProviderName(name) ? providers[name] : undefined
}

function isProviderName(name: string): name is ProviderName {
  return Object.hasOwn(providers, name)
}

/**
 * The entry for the option `provider`.
 * @throws WebhookInboxError `ERR_OPTION` for a name that is not in the catalogue, with the nearest one
 */
export function providerOf(provider: unknown): Provider {
  if (provider === undefined || provider === null) {
    throw optionError(
      `"provider" is missing. Pass a name, for instance provider: 'github', or an entry.`,
    )
  }
  if (typeof provider === 'string') {
    const found = getProvider(provider)
    if (found !== undefined) return found
    const near = nearest(provider, Object.keys(providers))
    throw optionError(
      `Unknown provider "${provider}".${near === undefined ? '' : ` Did you mean "${near}"?`} Known: ${Object.keys(providers).join(', ')}.`,
    )
  }
  if (isEntry(provider)) return provider
  throw optionError(`"provider" must be a name from the catalogue or a provider entry.`)
}

function isEntry(value: unknown): value is Provider {
  return (
    typeof value === 'object' &&
    value !== null &&
    'name' in value &&
    'signature' in value &&
    'deliveryId' in value &&
    'event' in value
  )
}
