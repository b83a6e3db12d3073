import { Readable } from 'node:stream';
import type { Opened, OpenOptions, Source } from '../../src/pipeline/ports.ts';

/** Signal that is never aborted. */
export const { signal } = new AbortController();

/** Opens an original as a stream, as for passthrough. */
export async function openStream(
  source: Pick<Source, 'open'>,
  key: string,
  options: Partial<OpenOptions> = {},
) {
  const opened = await source.open(key, { signal, ...options });
  if (!(opened.body instanceof Readable)) throw new Error('The body is not a stream.');
  return { ...(opened as Opened), body: opened.body };
}
