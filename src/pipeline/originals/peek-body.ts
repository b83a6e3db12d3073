import { once } from 'node:events';
import type { Readable } from 'node:stream';
import type { Opened } from '../ports.ts';
import { type Backend, brokenError } from './backend.ts';
import { isStream, lengthOf, withFirstByteDeadline } from './open-body.ts';

/**
 * Looks at the first bytes of an opened original, within the deadline of the first byte; they stay in its body.
 *
 * @param count how many bytes, at most; fewer come back only where the body is shorter
 * @throws MediaError `ORIGIN_ERROR` if the transfer fails before, `ORIGIN_TIMEOUT`; or `signal.reason`
 */
export async function peekBody(
  backend: Backend,
  opened: Opened,
  count: number,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const { body } = opened;
  if (!isStream(body)) return body.subarray(0, count);
  const lengthBytes = lengthOf(opened);
  const wanted = Math.min(count, lengthBytes ?? count);
  try {
    return await withFirstByteDeadline(backend, signal, async () => {
      const prefix = await takeFirst(body, wanted);
      const isShort = prefix.length < wanted && lengthBytes !== undefined;
      if (isShort || prefix.length > (lengthBytes ?? prefix.length)) {
        throw new Error(`${lengthBytes} bytes were announced; ${prefix.length} came.`);
      }
      if (prefix.length > 0) body.unshift(prefix);
      return prefix.subarray(0, count);
    });
  } catch (error) {
    body.destroy();
    signal.throwIfAborted();
    throw brokenError(backend, error);
  }
}

/**
 * Takes the first bytes out of a body: as many as are asked for, some more if they come together, or all of a shorter
 * one.
 *
 * @throws what the body has failed with
 */
async function takeFirst(body: Readable, count: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  while (length < count) {
    const chunk: Buffer | null = body.read();
    if (chunk !== null) {
      chunks.push(chunk);
      length += chunk.length;
      continue;
    }
    if (body.errored !== null) throw body.errored;
    if (body.readableEnded) break;
    if (body.destroyed) throw new Error('The body ended early.');
    await waitForMore(body);
  }
  return Buffer.concat(chunks);
}

async function waitForMore(body: Readable): Promise<void> {
  const settled = new AbortController();
  const { signal } = settled;
  const events = ['readable', 'end', 'close', 'error'];
  try {
    // `once` rejects with the error, which the caller finds for itself.
    await Promise.race(events.map((event) => once(body, event, { signal })));
  } catch {
  } finally {
    settled.abort();
  }
}
