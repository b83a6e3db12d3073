import { readConfig } from '../../config/config.ts';
import { MediaError } from '../../contract/errors.ts';
import {
  formatPath,
  originKeyOf,
  parseOriginKey,
  parsePath,
  unmarkedKeyOf,
} from '../../contract/media-path.ts';
import { resourceNames, resourceRows } from '../../contract/resources.ts';
import { withDeadline } from '../../pipeline/abort.ts';
import { readSize } from '../../pipeline/originals/open-body.ts';
import type { OriginalWriter } from '../../pipeline/originals/original-writer.ts';
import type { Source } from '../../pipeline/ports.ts';
import { openOrigin, openOriginalWriter } from '../../storage/open-storage.ts';
import {
  type Command,
  CommandFault,
  CommandStopped,
  exitStatus,
  formatByteSize,
  type Terminal,
  usageFault,
  writeLine,
} from '../command.ts';
import { type InputFile, openInputFile } from './input-file.ts';
import { checkImage } from './serving-trial.ts';

export const putCommand: Command = {
  summary: 'puts an original at its key, from a file',
  operands: ['KEY', 'FILE'],
  help: `
KEY is the key of an original, as in the table of docs/contract.md: the URL
/avatars/1/ab12.webp has the key avatars/1/ab12, without the extension, and
without a_ before the hash. FILE is copied into STORAGE_DIR or S3_BUCKET, and
replaces an existing original at once; - is standard input. A bucket needs
the right to write (s3:PutObject).

A file that could never be served from KEY is refused: one that is not an
image, is damaged, or exceeds a limit. Attachments may be anything. After an
original was replaced, purge it (docs/operate.md).

  darkroom put avatars/1/ab12 portrait.jpg
  darkroom put attachments/1/2/holiday.mp4 ~/Videos/holiday.mp4
  curl -s https://example.net/party.gif | darkroom put emojis/1 -`,
  run: async ([key = '', path = ''], terminal) => {
    const { urlPath, isImage } = parseAddress(key);
    const config = readConfig(terminal.environment);
    const origin = await openOrigin(config).catch(failToRead);
    const { signal, stdout } = terminal;
    const { sizeBytes, isReplaced } = await unlessStopped(terminal, async () => {
      const input = await openInputFile(path, terminal);
      const checked = isImage ? await checkImage(config, urlPath, path, input, signal) : input;
      const isReplaced = await exists(origin, key, config.originLimits.firstByteTimeoutMs, signal);
      const sizeBytes = await write(await openOriginalWriter(config), key, checked, signal);
      return { sizeBytes, isReplaced };
    });
    writeLine(stdout, `${key}: ${formatByteSize(sizeBytes)} (${sizeBytes}), served at ${urlPath}`);
    if (isReplaced) {
      writeLine(stdout, `It has replaced another one; purge ${JSON.stringify({ assets: [key] })}.`);
    }
    return exitStatus.ok;
  },
};

/**
 * Parses the key of an original as typed.
 *
 * @returns the path of a URL that serves the original, without parameters, and whether only images are served at this
 *   URL; attachments may be any file
 * @throws CommandFault that lists the keys, or names the one that was probably meant
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

/** Returns the key of the original behind a URL path; `undefined` if the path has none. */
function findMeantKey(text: string): string | undefined {
  const parsed = parsePath(text.startsWith('/') ? text : `/${text}`);
  return parsed.kind === 'valid' ? originKeyOf(parsed.path) : undefined;
}

function refusal(text: string, meant: string | undefined): CommandFault {
  const forms = resourceNames.flatMap((name) => resourceRows[name].originKey ?? []);
  const hint =
    meant === undefined
      ? `Keys are:\n${forms.map((form) => `  ${form}`).join('\n')}`
      : `What is served there has the key ${meant}`;
  return usageFault(`"${text}" is the key of no original. ${hint}`);
}

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

/** @returns the number of bytes written */
async function write(
  writer: OriginalWriter,
  key: string,
  chunks: InputFile,
  signal: AbortSignal,
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

async function exists(
  origin: Source,
  key: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<boolean> {
  const noAnswer = () => new Error('no response within ORIGIN_FIRST_BYTE_TIMEOUT_MS');
  try {
    await withDeadline(timeoutMs, signal, noAnswer, (within) => readSize(origin, key, within));
    return true;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof MediaError && error.code === 'UNKNOWN_MEDIA') return false;
    return failToRead(error);
  }
}

function failToRead(cause: unknown): never {
  throw new CommandFault('the storage cannot be read; see darkroom check', { cause });
}
