import { fstatSync, type Stats, statSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { devNull } from 'node:os';
import { addAbortSignal } from 'node:stream';
import { unlessAborted } from '../../pipeline/abort.ts';
import { CommandFault, type Terminal } from '../command.ts';

/** The descriptor of standard input. */
const STANDARD_INPUT = 0;

/** Bytes per read. */
const CHUNK_BYTES = 1024 * 1024;

/** A file, or standard input, that can be read once. */
export interface InputFile {
  /** `undefined` if unknown before the end. */
  readonly sizeBytes: number | undefined;
  readonly chunks: AsyncIterable<Uint8Array>;
}

/**
 * Opens a file. Its `chunks` throw a CommandFault if the file cannot be read to its end.
 *
 * @param path `-` is standard input
 * @throws CommandFault if the path cannot be read, or is a folder
 */
export async function openInputFile(path: string, { stdin, signal }: Terminal): Promise<InputFile> {
  if (path === '-') {
    checkStandardInput();
    // A stop does not wait for the process that writes to us.
    const chunks = readOr('standard input', addAbortSignal(signal, stdin), signal);
    return { sizeBytes: undefined, chunks };
  }
  const opening = open(path);
  // Nor does it wait for a process that opens the other end of a pipe.
  const file = await unlessAborted(opening, signal).catch((cause: unknown) => {
    signal.throwIfAborted();
    throw new CommandFault(`${path} cannot be read`, { cause });
  });
  const status = await file.stat();
  if (status.isDirectory()) {
    await file.close();
    throw new CommandFault(`${path} is a folder`);
  }
  return {
    // The size of a pipe, or of a file of /proc, means nothing.
    sizeBytes: status.isFile() && status.size > 0 ? status.size : undefined,
    chunks: readOr(path, readChunks(file, signal), signal),
  };
}

/**
 * Rejects an unreadable standard input: Node treats one as empty, and replaces a closed descriptor by the null device;
 * an original would be emptied by mistake.
 *
 * @throws CommandFault if standard input cannot be read
 */
function checkStandardInput(): void {
  const status = statOr(() => fstatSync(STANDARD_INPUT));
  if (status?.isDirectory()) throw new CommandFault('standard input is a folder');
  const isNull =
    status?.isCharacterDevice() && status.rdev === statOr(() => statSync(devNull))?.rdev;
  if (status === undefined || isNull) {
    throw new CommandFault(
      `standard input is closed, or ${devNull}; name ${devNull} itself for an empty file`,
    );
  }
  if (status.isBlockDevice()) throw new CommandFault('standard input is no file, pipe or terminal');
}

function statOr(read: () => Stats): Stats | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/**
 * Reads all bytes of a file; returns `undefined` beyond `maxBytes`.
 *
 * @throws errors of `chunks`
 */
export async function readWhole(
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

/** Passes chunks on; its errors name the file. */
async function* readOr(
  name: string,
  chunks: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  try {
    yield* chunks;
  } catch (cause) {
    signal.throwIfAborted();
    throw new CommandFault(`${name} cannot be read`, { cause });
  }
}

async function* readChunks(file: FileHandle, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  try {
    for (;;) {
      const reading = file.read(Buffer.allocUnsafe(CHUNK_BYTES));
      const { bytesRead, buffer } = await unlessAborted(reading, signal);
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    // The file closes once a hanging read ends; a stop does not wait for that.
    const closing = file.close();
    if (!signal.aborted) await closing;
  }
}
