import type { Config } from '../../config/config.ts';
import { sniffContentType } from '../../pipeline/originals/content-sniff.ts';
import type { Source } from '../../pipeline/ports.ts';
import { clampRange } from '../../storage/origin-object.ts';
import { formatErrorResponse, withOfflineApp } from '../offline-app.ts';
import { silentLog } from '../plain-log.ts';
import type { OriginalAddress } from './original-address.ts';

/**
 * Returns why the service would never serve a file as the original of an address: renders a small still, the cheapest
 * request, with this file in place of every original.
 *
 * @returns the error of the API; `undefined` if the service would serve the file
 * @throws `signal.reason`
 */
export async function findServingFault(
  config: Config,
  { urlPath }: OriginalAddress,
  bytes: Buffer,
  signal: AbortSignal,
): Promise<string | undefined> {
  const parts = { log: silentLog, origin: createTrialOrigin(bytes) };
  return withOfflineApp(config, parts, signal, async (ask) => {
    const response = await ask(`${urlPath}?size=16`);
    if (response.status === 200) return undefined;
    const type = await sniffContentType(bytes);
    return `${await formatErrorResponse(response)} (It is ${type}.)`;
  });
}

function createTrialOrigin(bytes: Buffer): Source {
  return {
    identity: 'tag',
    open: async (_key, { signal, range }) => {
      signal.throwIfAborted();
      const part = clampRange(range, bytes.length);
      return {
        sizeBytes: bytes.length,
        etag: 'trial',
        lastModified: undefined,
        part: range && part,
        body: bytes.subarray(part.first, part.last + 1),
      };
    },
  };
}
