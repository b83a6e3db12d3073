import { realpath, stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { json } from 'node:stream/consumers';
import { readConfig } from '../config/config.ts';
import { isOriginKey, unmarkedKeyOf } from '../contract/media-path.ts';
import { METADATA_PATH, type MediaMetadata } from '../contract/metadata.ts';
import { encodeOriginKey } from '../contract/result-key.ts';
import type { Source } from '../pipeline/ports.ts';
import { createFilesystemOrigin } from '../storage/filesystem/origin.ts';
import { RootDirectory } from '../storage/filesystem/root-directory.ts';
import { type Command, CommandError, createPlainLog, exitStatus, writeLine } from './command.ts';
import { formatErrorResponse, withOfflineApp } from './offline-app.ts';

const FILE_KEY = 'attachments/0/0/file';

export const metadataCommand: Command = {
  summary: 'prints metadata of a file or an original',
  operands: ['FILE|KEY'],
  help: `
Prints the JSON of GET /metadata/{key} of the admin listener: type, size,
dimensions, duration, codec, placeholder and SHA-256. KEY is the key of an
original in the storage, such as attachments/1/2/clip.mp4; anything else is a
local file. Write ./ before a file whose path looks like a key.

  darkroom metadata ./clip.mp4
  darkroom metadata attachments/1/2/clip.mp4`,
  run: async ([operand = ''], terminal) => {
    const config = readConfig(terminal.environment);
    const { resources } = config.parseOptions;
    const isKey = isOriginKey(operand, resources);
    const key = isKey ? (unmarkedKeyOf(operand, resources) ?? operand) : undefined;
    const origin = key === undefined ? await openFile(operand) : undefined;
    const parts = { log: createPlainLog(terminal.stderr), ...(origin && { origin }) };
    return withOfflineApp(config, parts, terminal.signal, async (_send, sendAdmin) => {
      const path = METADATA_PATH + encodeOriginKey(key ?? FILE_KEY);
      const response = await sendAdmin(`${path}?sha256=true`);
      if (response.status !== 200) throw new CommandError(await formatErrorResponse(response));
      const metadata = (await json(response.body)) as MediaMetadata;
      // A file has neither a key nor a tag of a storage.
      const shown = key === undefined ? { ...metadata, key: operand, etag: null } : metadata;
      writeLine(terminal.stdout, JSON.stringify(shown, undefined, 2));
      return exitStatus.ok;
    });
  },
};

/** Opens a file as the only original. @throws CommandError if the file cannot be read */
async function openFile(path: string): Promise<Source> {
  try {
    const real = await realpath(path);
    if (!(await stat(real)).isFile()) throw new Error('it is not a file');
    const directory = createFilesystemOrigin(await RootDirectory.open(dirname(real)));
    return {
      identity: directory.identity,
      open: (_key, options) => directory.open(basename(real), options),
    };
  } catch (cause) {
    throw new CommandError(`"${path}" is neither a key of an original nor a readable file`, {
      cause,
    });
  }
}
