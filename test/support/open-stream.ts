import { Readable } from 'node:stream';
import type { Opened, OpenOptions, Source } from '../../src/pipeline/ports.ts';

/** Of a reader that stays. */
export const { signal } = new AbortController();

/** Opens an original whose body is a stream, as it is passed on. */
export async function openStream(
  source: Pick<Source, 'open'>,
  key: string,
  options: Partial<OpenOptions> = {},
) {
  const opened = await source.open(key, { signal, ...options });
  if (!(opened.body instanceof Readable)) throw new Error('The body is no stream.');
  return { ...(opened as Opened), body: opened.body };
}
