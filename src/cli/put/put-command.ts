import { Readable } from 'node:stream';
import { type Config, readConfig } from '../../config/config.ts';
import {
  formatPath,
  originKeyOf,
  parseOriginKey,
  parsePath,
  unmarkedKeyOf,
} from '../../contract/media-path.ts';
import { resourceNames, resourceRows } from '../../contract/resources.ts';
import { withDeadline } from '../../pipeline/abort.ts';
import { sniffContentType } from '../../pipeline/originals/content-sniff.ts';
import type { OriginalWriter } from '../../pipeline/originals/original-writer.ts';
import type { Source } from '../../pipeline/ports.ts';
import { openStorage } from '../../storage/open-storage.ts';
import { openBytes } from '../../storage/origin-object.ts';
import {
  type Command,
  CommandError,
  exitStatus,
  formatByteSize,
  silentLog,
  usageError,
  writeLine,
} from '../command.ts';
import { formatErrorResponse, withOfflineApp } from '../offline-app.ts';
import type { Progress } from '../progress.ts';
import { type InputFile, openInputFile, readAll } from './input-file.ts';

export const putCommand: Command = {
  summary: 'puts an original at its key, from a file',
  operands: ['KEY', 'FILE'],
  stopped: 'nothing was stored',
  help: `
KEY is the key of an original, as in the table of docs/contract.md: the URL
/avatars/1/ab12.webp has the key avatars/1/ab12, without the extension, and
without a_ before the hash. FILE is copied into STORAGE_DIR or S3_BUCKET, and
replaces an existing original at once; - is standard input. A bucket needs
the right to write (s3:PutObject).

The command rejects a file that cannot be served from KEY: one that is not an
image, is damaged, or exceeds a limit. Attachments can be any file. After you
replace an original, purge it (docs/operate.md).

  darkroom put avatars/1/ab12 portrait.jpg
  darkroom put attachments/1/2/holiday.mp4 ~/Videos/holiday.mp4
  curl -s https://example.net/party.gif | darkroom put emojis/1 -`,
  run: async ([key = '', path = ''], terminal) => {
    const { urlPath, isImage } = parseAddress(key);
    const config = readConfig(terminal.environment);
    const { signal, stdout, stderr } = terminal;
    const { firstByteTimeoutMs } = config.originLimits;
    const onTimeout = () => new Error('no response within ORIGIN_FIRST_BYTE_TIMEOUT_MS');
    const fail = (cause: unknown): never => {
      signal.throwIfAborted();
      throw new CommandError('the storage cannot be read; see darkroom check', { cause });
    };
    const storage = await openStorage(config.storage, config.originLimits).catch(fail);
    const writer = storage.openWriter();
    const input = await openInputFile(path, terminal);
    const checked = isImage ? await checkImage(config, urlPath, path, input, signal) : input;
    const isReplaced = await withDeadline(firstByteTimeoutMs, signal, onTimeout, (within) =>
      writer.has(key, within),
    ).catch(fail);
    const { createProgress } = await import('../progress.ts');
    const progress = createProgress(stderr, key, checked.sizeBytes);
    const sizeBytes = await write(writer, key, checked, progress, signal).finally(progress.stop);
    writeLine(stdout, `${key}: ${formatByteSize(sizeBytes)} (${sizeBytes}), served at ${urlPath}`);
    if (isReplaced) {
      writeLine(
        stdout,
        `This replaced an existing original; purge ${JSON.stringify({ assets: [key] })}.`,
      );
    }
    return exitStatus.ok;
  },
};

/**
 * Returns the path of a URL that serves the original, and whether only images are served there.
 * @throws CommandError that lists the keys, or names the one that was probably meant
 */
function parseAddress(text: string) {
  const key = parseOriginKey(text);
  if (key === undefined) throw refusal(text, findMeantKey(text));
  const meant = unmarkedKeyOf(text);
  if (meant !== undefined) throw refusal(text, meant);
  const isImage = resourceRows[key.resource].query !== 'external';
  const urlPath = formatPath({ ...key, extension: isImage ? 'webp' : undefined });
  return { urlPath, isImage };
}

function findMeantKey(text: string): string | undefined {
  const parsed = parsePath(text.startsWith('/') ? text : `/${text}`);
  return parsed.kind === 'valid' ? originKeyOf(parsed.path) : undefined;
}

function refusal(text: string, meant: string | undefined): CommandError {
  const templates = resourceNames.flatMap((name) => resourceRows[name].originKey ?? []);
  const hint =
    meant === undefined
      ? `Keys are:\n${templates.map((template) => `  ${template}`).join('\n')}`
      : `The original there has the key ${meant}`;
  return usageError(`"${text}" is not the key of an original. ${hint}`);
}

/** Returns the number of bytes written. */
async function write(
  writer: OriginalWriter,
  key: string,
  chunks: InputFile,
  progress: Progress,
  signal: AbortSignal,
): Promise<number> {
  let writtenBytes = 0;
  const counted = async function* (): AsyncGenerator<Uint8Array> {
    for await (const chunk of chunks) {
      yield chunk;
      writtenBytes += chunk.length;
      progress.advance(chunk.length);
    }
  };
  try {
    await writer.write(key, counted(), { signal });
    return writtenBytes;
  } catch (cause) {
    // An error about the remains of an upload is shown even after a stop.
    if (cause instanceof Error && cause.name === 'AbortError') throw cause;
    throw new CommandError(`${key} cannot be written`, { cause });
  }
}

/** Reads an image into memory. @throws CommandError if the service would never serve the image */
async function checkImage(
  config: Config,
  urlPath: string,
  path: string,
  chunks: InputFile,
  signal: AbortSignal,
): Promise<InputFile> {
  const { maxOriginalBytes } = config.originLimits;
  const bytes = await readAll(chunks, maxOriginalBytes);
  const rejection =
    bytes === undefined
      ? `it is larger than ${formatByteSize(maxOriginalBytes)} (MAX_ORIGINAL_BYTES)`
      : await findRejection(config, urlPath, bytes, signal);
  if (rejection !== undefined || bytes === undefined) {
    throw new CommandError(`${path} cannot be served at ${urlPath}: ${rejection}`);
  }
  return Object.assign(Readable.from([bytes]), { sizeBytes: bytes.length });
}

/**
 * Returns the error of the API if the service would never serve a file at a URL: renders a small still, the cheapest
 * request, with this file as every original.
 */
async function findRejection(
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
  return withOfflineApp(config, parts, signal, async (send) => {
    const response = await send(`${urlPath}?size=16`);
    if (response.status === 200) return undefined;
    const type = await sniffContentType(bytes);
    return `${await formatErrorResponse(response)} (It is ${type}.)`;
  });
}
