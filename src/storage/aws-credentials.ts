import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe } from 'node:diagnostics_channel';
import type { ClientRequest } from 'node:http';
import { isTimeout, timeoutError, withDeadline } from '../pipeline/abort.ts';
import { defaultProvider } from './aws-sdk.ts';

type CredentialProvider = ReturnType<typeof defaultProvider>;

/** Deadline of one request; with the SDK's pause before a retry, below the default of ORIGIN_FIRST_BYTE_TIMEOUT_MS. */
const REQUEST_TIMEOUT_MS = 3_000;

/** Deadline of all requests with their retries, or of a `credential_process`. */
const CHAIN_TIMEOUT_MS = 60_000;

/** Marks requests for credentials: the providers for containers and STS support neither a signal nor a deadline. */
const chainContext = new AsyncLocalStorage<true>();

subscribe('http.client.request.start', (message) => {
  if (chainContext.getStore() !== true) return;
  const { request } = message as { readonly request: ClientRequest };
  const timer = setTimeout(() => {
    const text = `The credentials endpoint did not respond within ${REQUEST_TIMEOUT_MS} ms.`;
    request.destroy(Object.assign(new Error(text), { code: 'ETIMEDOUT' }));
  }, REQUEST_TIMEOUT_MS);
  request.once('close', () => clearTimeout(timer));
});

/**
 * Creates a provider with the SDK's default chain (environment, shared files, container, instance) and with deadlines.
 * Callers of the SDK's provider share one promise, so an unresponsive endpoint would block all of them forever.
 */
export function createCredentialProvider(): CredentialProvider {
  let chain = defaultProvider();
  return async (options) => {
    const used = chain;
    const onTimeout = (): Error => timeoutError(`No credentials within ${CHAIN_TIMEOUT_MS} ms.`);
    try {
      return await withDeadline(CHAIN_TIMEOUT_MS, undefined, onTimeout, () =>
        chainContext.run(true, () => used(options)),
      );
    } catch (error) {
      if (isTimeout(error) && chain === used) chain = defaultProvider();
      throw error;
    }
  };
}
