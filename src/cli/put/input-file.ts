import { open } from 'node:fs/promises';
import { devNull } from 'node:os';
import { unlessAborted } from '../../pipeline/abort.ts';
import { CommandError, type Terminal } from '../command.ts';

const CHUNK_BYTES = 1024 * 1024;

/** Bytes of a file or of standard input, which can be read once. */
export interface InputFile extends AsyncIterable<Uint8Array> {
  /** Omitted for a pipe or a device. */
  readonly sizeBytes?: number | undefined;
}

/**
 * Opens a file.
 *
 * @param path `-` for standard input
 * @throws CommandError, also while the bytes are read
 */
export async function openInputFile(path: string, { stdin, signal }: Terminal): Promise<InputFile> {
  if (path === '-') return readOr('standard input', rejectEmpty(stdin), signal);
  // Opening a pipe waits for another process, and a stop must not.
  const file = await unlessAborted(open(path), signal).catch((cause: unknown) => {
    signal.throwIfAborted();
    throw new CommandError(`${path} cannot be read`, { cause });
  });
  const status = await file.stat();
  if (status.isDirectory()) {
    await file.close();
    throw new CommandError(`${path} is a directory`);
  }
  const chunks = readOr(path, file.createReadStream({ highWaterMark: CHUNK_BYTES }), signal);
  return Object.assign(chunks, { sizeBytes: status.isFile() ? status.size : undefined });
}

/** Node shows a closed or unreadable standard input as an empty one, so an empty original must be a named file. */
async function* rejectEmpty(stdin: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let isEmpty = true;
  for await (const chunk of stdin) {
    isEmpty = false;
    yield chunk;
  }
  if (isEmpty) throw new Error(`it is empty; name ${devNull} for an empty file`);
}

/** Returns `undefined` beyond `maxBytes`. */
export async function readAll(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes: number,
): Promise<Buffer | undefined> {
  const parts: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const chunk of chunks) {
    sizeBytes += chunk.length;
    if (sizeBytes > maxBytes) return undefined;
    parts.push(chunk);
  }
  return Buffer.concat(parts);
}

/** Errors name the file. A stop does not wait for a read that hangs. */
async function* readOr(
  name: string,
  chunks: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const reader = chunks[Symbol.asyncIterator]();
  try {
    for (;;) {
      const { value, done } = await unlessAborted(reader.next(), signal);
      if (done === true) return;
      yield value;
    }
  } catch (cause) {
    signal.throwIfAborted();
    throw new CommandError(`${name} cannot be read`, { cause });
  } finally {
    void reader.return?.();
  }
}
