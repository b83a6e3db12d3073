import { type Config, readConfig } from '../../config/config.ts';
import { formatCauses, MediaError } from '../../contract/errors.ts';
import { findKeyFault, isOriginKey, unmarkedKeyOf } from '../../contract/media-path.ts';
import { isRefusal } from '../../pipeline/uploads/metadata-removal.ts';
import type { OpenedStorage } from '../../storage/backend.ts';
import { openStorage } from '../../storage/open-storage.ts';
import { isBlockedBytes, purgeOriginal } from '../admin-commands.ts';
import {
  type Command,
  CommandError,
  countOf,
  exitStatus,
  type Terminal,
  usageError,
  writeLine,
} from '../command.ts';
import { type StripParts, stripOriginal } from './strip-original.ts';

const CANNOT = 'cannot be cleaned';

export const stripCommand: Command = {
  summary: 'removes metadata from stored originals',
  operands: ['KEY…'],
  options: { 'dry-run': '', prefix: 'PREFIX/' },
  stopped: 'the originals above are done; run it again for the others',
  help: `
Overwrites position, time, camera, author and comments in the pictures and
videos at these keys, or below PREFIX/, without decoding them: pixels, samples
and length stay (docs/contract.md, section 16). The cleaned version replaces
the original only if nothing else has changed it, and the key is purged at
ADMIN_HOST and ADMIN_PORT. Prints a line for each original:

  removed           metadata is overwritten; in a dry run: would be removed
  none              the original has no metadata
  not-supported     unchanged: metadata cannot be removed from this format
  blocked           unchanged: its SHA-256 is blocked, and would change
  missing           the storage has no original with this key
  cannot be cleaned unchanged, with the reason: for example, it is damaged
  failed            the storage failed, or others keep replacing the original

You can stop the command and run it again: cleaned originals stay clean.

  darkroom strip attachments/1/2/holiday.jpg
  darkroom strip --dry-run --prefix attachments/1471234567890123456/

Exit status: 0 done; 1 an original is missing, damaged or has failed; 64 no
key; 78 settings are not valid.`,
  run: async (operands, terminal, { prefix, 'dry-run': isDryRun = false }) => {
    if (operands.length === 0 && prefix === undefined) {
      throw usageError('strip needs KEY or --prefix; see darkroom strip --help');
    }
    const config = readConfig(terminal.environment);
    const keys = operands.map((text) => parseKey(text, config));
    const keyPrefix = prefix === undefined ? undefined : parsePrefix(String(prefix));
    if (isDryRun !== true && config.admin === undefined && config.blocklist !== undefined) {
      throw new CommandError('ADMIN_PORT is not set: blocked originals cannot be recognized');
    }
    const { signal } = terminal;
    const storage = await openStorage(config.storage, config.originLimits).catch((cause) => {
      signal.throwIfAborted();
      throw new CommandError('the storage cannot be read; see darkroom check', { cause });
    });
    const run = createRun(config, storage, isDryRun === true, terminal);
    for (const key of keys) await run.strip(key);
    if (keyPrefix !== undefined) await stripAll(keyPrefix, config, storage, run.strip, signal);
    return run.finish();
  },
};

/** @throws CommandError with the status of a usage error */
function parseKey(text: string, { parseOptions }: Config): string {
  const key = unmarkedKeyOf(text, parseOptions.resources) ?? text;
  if (isOriginKey(key, parseOptions.resources)) return key;
  throw usageError(`"${text}" is not the key of an original; see darkroom put --help`);
}

function parsePrefix(text: string): string {
  const path = text.replace(/\/$/, '');
  const fault = findKeyFault(path);
  if (fault !== undefined) throw usageError(`"${text}" is not a prefix of keys. ${fault}`);
  return `${path}/`;
}

/** @throws CommandError if the storage cannot be listed */
async function stripAll(
  prefix: string,
  { parseOptions }: Config,
  storage: OpenedStorage,
  strip: (key: string) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  let stopped: unknown;
  const visit = async ({ key }: { readonly key: string }): Promise<boolean> => {
    if (!isOriginKey(key, parseOptions.resources)) return true;
    try {
      await strip(key);
      return true;
    } catch (error) {
      // The listing must not report this error as its own.
      stopped = error;
      return false;
    }
  };
  await storage
    .openListing()
    .list(prefix, visit, signal)
    .catch((cause: unknown) => {
      signal.throwIfAborted();
      throw new CommandError(`${prefix} cannot be listed; see darkroom check`, { cause });
    });
  if (stopped !== undefined) throw stopped;
}

/** Reports each original, and counts the outcomes. */
function createRun(
  config: Config,
  storage: OpenedStorage,
  isDryRun: boolean,
  { environment, signal, stdout, stderr }: Terminal,
) {
  const report = (line: string): void => writeLine(stdout, line);
  const counts = new Map<string, number>();
  const parts: StripParts = {
    origin: storage.origin,
    writer: storage.openWriter(),
    firstByteTimeoutMs: config.originLimits.firstByteTimeoutMs,
    isDryRun,
    purge: async (key) => {
      if (config.admin === undefined) return;
      await purgeOriginal(key, environment).catch((cause: unknown) => {
        throw new CommandError(`${key} is stored without metadata, but not purged`, { cause });
      });
    },
    isBlocked: config.blocklist && ((sha256) => isBlockedBytes(sha256, environment)),
  };
  return {
    /** @throws CommandError if the original cannot be purged: the next ones would not be purged either */
    strip: async (key: string): Promise<void> => {
      const { outcome, details = '' } = await stripOriginal(key, parts, signal).then(
        (outcome) => ({ outcome, details: undefined }),
        (error: unknown) => describeFailure(error, signal),
      );
      const shown = isDryRun && outcome === 'removed' ? 'would be removed' : outcome;
      counts.set(shown, (counts.get(shown) ?? 0) + 1);
      report(`${key}: ${shown}${details}`);
    },
    /** Reports the total, and returns the exit status. */
    finish: (): number => {
      const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
      const outcomes = [...counts].map(([outcome, count]) => `, ${count} ${outcome}`);
      const dryRun = isDryRun ? ' (dry run: nothing was written)' : '';
      report(`${countOf(total, 'original')}${outcomes.join('')}${dryRun}`);
      if (counts.has('removed') && config.admin === undefined) {
        writeLine(stderr, 'darkroom: ADMIN_PORT is not set; purge the originals that changed');
      }
      const hasFailed = ['missing', CANNOT, 'failed'].some((outcome) => counts.has(outcome));
      return hasFailed ? exitStatus.failure : exitStatus.ok;
    },
  };
}

function describeFailure(error: unknown, signal: AbortSignal) {
  if (error instanceof CommandError) throw error;
  if (error instanceof MediaError && error.code === 'UNKNOWN_MEDIA') return { outcome: 'missing' };
  if (isRefusal(error) && error instanceof MediaError) {
    const { message } = error.cause as Error;
    return { outcome: CANNOT, details: `: ${message}` };
  }
  // A write may have left something behind, so its error is shown even after a stop.
  const isAbort = error instanceof Error && error.name === 'AbortError';
  if (isAbort || error === signal.reason) throw error;
  if (error instanceof MediaError && error.code === 'PRECONDITION_FAILED') {
    return { outcome: 'failed', details: ': it is being replaced' };
  }
  return { outcome: 'failed', details: formatCauses(error) };
}
