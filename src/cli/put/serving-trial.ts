import { Readable } from 'node:stream';
import type { Config } from '../../config/config.ts';
import { sniffContentType } from '../../pipeline/originals/content-sniff.ts';
import type { Source } from '../../pipeline/ports.ts';
import { openBytes } from '../../storage/origin-object.ts';
import { CommandFault, formatByteSize, silentLog } from '../command.ts';
import { formatErrorResponse, withOfflineApp } from '../offline-app.ts';
import { type InputFile, readWhole } from './input-file.ts';

/**
 * Reads an image to its end, and checks that the service would serve it.
 *
 * @param urlPath path of a URL that serves the image, without parameters
 * @param path of the file, for the message
 * @throws CommandFault if the service would never serve the image
 */
export async function checkImage(
  config: Config,
  urlPath: string,
  path: string,
  chunks: InputFile,
  signal: AbortSignal,
): Promise<InputFile> {
  const { maxOriginalBytes } = config.originLimits;
  const bytes = await readWhole(chunks, maxOriginalBytes);
  const fault =
    bytes === undefined
      ? `it is larger than ${formatByteSize(maxOriginalBytes)} (MAX_ORIGINAL_BYTES)`
      : await findServingFault(config, urlPath, bytes, signal);
  if (fault !== undefined || bytes === undefined) {
    throw new CommandFault(`${path} could never be served at ${urlPath}: ${fault}`);
  }
  return Readable.from([bytes]);
}

/**
 * Returns why the service would never serve a file as the original behind a URL: renders a small still, the cheapest
 * request, with this file in place of every original.
 *
 * @returns the error of the API; `undefined` if the service would serve the file
 * @throws `signal.reason`
 */
async function findServingFault(
  config: Config,
  urlPath: string,
  bytes: Buffer,
  signal: AbortSignal,
): Promise<string | undefined> {
  const origin: Source = {
    identity: 'tag',
    open: async (_key, { range }) => openBytes(bytes, 'trial', range),
  };
  const parts = { log: silentLog, origin };
  return withOfflineApp(config, parts, signal, async (ask) => {
    const response = await ask(`${urlPath}?size=16`);
    if (response.status === 200) return undefined;
    const type = await sniffContentType(bytes);
    return `${await formatErrorResponse(response)} (It is ${type}.)`;
  });
}
