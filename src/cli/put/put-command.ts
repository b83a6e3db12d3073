import { Readable } from 'node:stream';
import { type Config, readConfig } from '../../config/config.ts';
import { MediaError } from '../../contract/errors.ts';
import { withDeadline } from '../../pipeline/abort.ts';
import { readSize } from '../../pipeline/originals/open-body.ts';
import type { OriginalWriter } from '../../pipeline/originals/original-writer.ts';
import type { Source } from '../../pipeline/ports.ts';
import { openOrigin, openOriginalWriter } from '../../storage/open-storage.ts';
import { formatByteSize } from '../byte-size.ts';
import {
  type Command,
  CommandFault,
  CommandStopped,
  exitStatus,
  type Terminal,
  writeLine,
} from '../command.ts';
import { type InputFile, openInputFile, readWhole } from './input-file.ts';
import { type OriginalAddress, parseAddress } from './original-address.ts';
import { findServingFault } from './serving-trial.ts';

/** Stores an original where the service reads it. */
export const putCommand: Command = {
  summary: 'puts an original at its key, from a file',
  operands: ['KEY', 'FILE'],
  help: `
KEY is the key of an original, as in the table of URLs in README.md: what is
served at /avatars/1/ab12.webp has the key avatars/1/ab12, without an
extension, and without a_ before the hash. FILE is copied into STORAGE_DIR, or
into S3_BUCKET, where it takes the place of what was there, whole and at once;
- is standard input. A bucket needs the right to write (s3:PutObject).

A file that could never be served from KEY is refused: what is no image, is
broken, or is over a limit. Attachments may be anything. What replaces an
original must be purged, see README.md.

  darkroom put avatars/1/ab12 portrait.jpg
  darkroom put attachments/1/2/holiday.mp4 ~/Videos/holiday.mp4
  curl -s https://example.net/party.gif | darkroom put emojis/1 -`,
  run: async ([key = '', path = ''], terminal) => {
    const address = parseAddress(key);
    const config = readConfig(terminal.environment);
    const origin = await openOrigin(config).catch(failToRead);
    const { firstByteTimeoutMs } = config.originLimits;
    const find = (signal: AbortSignal) => findSize(origin, key, firstByteTimeoutMs, signal);
    const { sizeBytes, isReplaced } = await unlessStopped(terminal, async () => {
      const input = await openInputFile(path, terminal);
      const checked = address.isImage
        ? await checkImage(config, address, path, input, terminal.signal)
        : input;
      const before = await find(terminal.signal);
      return {
        isReplaced: before !== undefined,
        sizeBytes: await write(await openOriginalWriter(config), address, checked, terminal),
      };
    });
    // A stop comes too late from here on: the original is stored, and the output says so.
    const storedBytes = await find(new AbortController().signal);
    if (storedBytes !== sizeBytes) {
      throw new CommandFault(
        `${key} was written with ${sizeBytes} bytes, but has ${storedBytes ?? 'none'}`,
      );
    }
    writeLine(
      terminal.stdout,
      `${key}: ${formatByteSize(sizeBytes)} (${sizeBytes}), served at ${address.urlPath}`,
    );
    if (isReplaced) {
      writeLine(
        terminal.stdout,
        `It has replaced another one; purge ${JSON.stringify({ assets: [key] })}.`,
      );
    }
    return exitStatus.ok;
  },
};

/** @throws CommandStopped if stopped in time; errors of the work */
async function unlessStopped<Result>(
  { signal }: Terminal,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (cause) {
    if (!signal.aborted || cause instanceof CommandFault) throw cause;
    throw new CommandStopped('nothing was stored', { cause });
  }
}

/** @throws CommandFault if the service would never serve the image */
async function checkImage(
  config: Config,
  address: OriginalAddress,
  path: string,
  { chunks }: InputFile,
  signal: AbortSignal,
): Promise<InputFile> {
  const { maxOriginalBytes } = config.originLimits;
  const bytes = await readWhole(chunks, maxOriginalBytes);
  const fault =
    bytes === undefined
      ? `it is larger than ${formatByteSize(maxOriginalBytes)} (MAX_ORIGINAL_BYTES)`
      : await findServingFault(config, address, bytes, signal);
  if (fault !== undefined || bytes === undefined) {
    throw new CommandFault(`${path} could never be served at ${address.urlPath}: ${fault}`);
  }
  return { sizeBytes: bytes.length, chunks: Readable.from([bytes]) };
}

/** @returns the number of bytes written */
async function write(
  writer: OriginalWriter,
  { key }: OriginalAddress,
  { chunks }: InputFile,
  { signal }: Terminal,
): Promise<number> {
  let writtenBytes = 0;
  const counted = async function* (): AsyncGenerator<Uint8Array> {
    for await (const chunk of chunks) {
      writtenBytes += chunk.length;
      yield chunk;
    }
  };
  try {
    await writer.write(key, counted(), { signal });
    return writtenBytes;
  } catch (cause) {
    // An error about remains of the upload is shown even after a stop.
    if (cause instanceof Error && cause.name === 'AbortError') throw cause;
    throw new CommandFault(`${key} cannot be written`, { cause });
  }
}

/** Returns the size of an original; `undefined` if it is missing. */
async function findSize(
  origin: Source,
  key: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<number | undefined> {
  try {
    return await withDeadline(timeoutMs, signal, noAnswer, (within) =>
      readSize(origin, key, within),
    );
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof MediaError && error.code === 'UNKNOWN_MEDIA') return undefined;
    return failToRead(error);
  }
}

function failToRead(cause: unknown): never {
  throw new CommandFault('the storage cannot be read; see darkroom check', { cause });
}

function noAnswer(): Error {
  return new Error('no answer within ORIGIN_FIRST_BYTE_TIMEOUT_MS');
}
