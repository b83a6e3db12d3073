import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe } from 'node:diagnostics_channel';
import type { ClientRequest } from 'node:http';
import { isTimeout, timeoutError, withDeadline } from '../pipeline/abort.ts';
import { defaultProvider } from './aws-sdk.ts';

type CredentialProvider = ReturnType<typeof defaultProvider>;

/**
 * Deadline of a request for credentials, its response included, in milliseconds. With the SDK's pause before a retry, less
 * than the default deadline of an original's first byte.
 */
const REQUEST_TIMEOUT_MS = 3_000;

/** Deadline of all requests with retries, or of a `credential_process`, in milliseconds. */
const CHAIN_TIMEOUT_MS = 60_000;

/** Marks the asynchronous context of requests for credentials. */
const chainContext = new AsyncLocalStorage<true>();

// The providers of containers and of STS support neither a signal nor a deadline.
subscribe('http.client.request.start', (message) => {
  if (chainContext.getStore() !== true) return;
  const { request } = message as { readonly request: ClientRequest };
  const timer = setTimeout(() => {
    const text = `The endpoint of credentials has not responded within ${REQUEST_TIMEOUT_MS} ms.`;
    request.destroy(Object.assign(new Error(text), { code: 'ETIMEDOUT' }));
  }, REQUEST_TIMEOUT_MS);
  request.once('close', () => clearTimeout(timer));
});

/**
 * Creates a provider of credentials from the SDK's usual chain: environment, shared files, container, instance.
 *
 * All callers of the SDK's provider share one promise, and an unresponsive endpoint would block them forever. Here each
 * request has a deadline, after which the SDK retries, and so has the chain.
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
