import { nearest, optionError } from '../errors.ts'
import { checkEntry } from './check.ts'
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
 * @throws WebhookInboxError `ERR_OPTION` for a name that is not in the catalogue, with the nearest one, or a wrong entry
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
      `Unknown provider "${provider}".${near === undefined ? '' : ` Did you mean "${near}"?`} Known: ${Object.keys(providers).join(', ')}. For another sender pass a provider entry of your own.`,
    )
  }
  checkEntry(provider)
  return provider
}
