import { randomBytes } from 'node:crypto';
import type { Config } from '../../config/config.ts';
import { describeLocation, keySettings } from '../../config/variables/storage-settings.ts';
import { formatCauses, formatReadFailure, MediaError } from '../../contract/errors.ts';
import { isOriginKey } from '../../contract/media-path.ts';
import { withDeadline } from '../../pipeline/abort.ts';
import { isStream } from '../../pipeline/originals/open-body.ts';
import { AccessRefused } from '../../pipeline/ports.ts';
import type { OpenedStorage } from '../../storage/backend.ts';
import { openStorage } from '../../storage/open-storage.ts';
import { countOf } from '../command.ts';
import { type Finding, fault, ok } from './finding.ts';

const LISTED_KEYS = 100;

/** Yields each finding as soon as it is known. */
export async function* checkOrigin(config: Config, signal: AbortSignal): AsyncGenerator<Finding> {
  const { storage, originLimits } = config;
  const where = describeLocation(storage);
  yield ok('storage', storage.prefix ? `${where}, ${storage.prefix}` : where);
  /** Returns the error, `ORIGIN_TIMEOUT` after the deadline, even if a hanging disk ignores the signal. */
  const failureOf = async (work: (within: AbortSignal) => Promise<void>): Promise<unknown> => {
    const onTimeout = () => new MediaError('ORIGIN_TIMEOUT');
    try {
      await withDeadline(originLimits.firstByteTimeoutMs, signal, onTimeout, work);
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      return error;
    }
  };

  const keys: string[] = [];
  let opened: OpenedStorage;
  try {
    opened = await openStorage(storage, originLimits);
  } catch (error) {
    yield fault('storage', `${where} cannot be opened${formatCauses(error)}`);
    return;
  }
  const refusal = await failureOf((within) =>
    opened.openListing().list('', ({ key }) => keys.push(key) <= LISTED_KEYS, within),
  );
  const mayNotList = refusal instanceof MediaError && refusal.cause instanceof AccessRefused;
  let sizeBytes = 0;
  const read = (key: string) =>
    failureOf(async (within) => {
      const found = await opened.origin.open(key, { signal: within });
      if (isStream(found.body)) found.body.destroy();
      sizeBytes = ('sizeBytes' in found && found.sizeBytes) || 0;
    });
  const absentKey = `attachments/0/0/darkroom-check-${randomBytes(8).toString('hex')}`;
  yield describeAbsence(absentKey, await read(absentKey), mayNotList);
  yield refusal === undefined
    ? describeKeys(keys, keySettings[storage.kind])
    : fault('listing', describeRefusal(refusal) + (mayNotList ? '; grant s3:ListBucket' : ''));
  const key = keys.find((each) => isOriginKey(each));
  if (refusal !== undefined || key === undefined) return;
  const failure = await read(key);
  const reason = isMissing(failure) ? ': it is listed, but missing' : formatReadFailure(failure);
  yield failure === undefined
    ? ok('reading', `${key} has ${countOf(sizeBytes, 'byte')}`)
    : fault('reading', `${key} cannot be read${reason}`);
}

function isMissing(failure: unknown): boolean {
  return failure instanceof MediaError && failure.code === 'UNKNOWN_MEDIA';
}

function describeAbsence(key: string, failure: unknown, mayNotList: boolean): Finding {
  if (isMissing(failure)) return ok('missing original', 'is reported as missing');
  if (failure === undefined) return fault('missing original', `${key} exists`);
  const consequence = mayNotList
    ? '; without the right to list (s3:ListBucket), S3 returns 403 for a missing original, and clients get a 502 instead of 404'
    : '';
  const reason = formatReadFailure(failure);
  return fault('missing original', `is reported as a failure${reason}${consequence}`);
}

function describeRefusal(error: unknown): string {
  const isFailure = error instanceof MediaError && error.code !== 'ORIGIN_TIMEOUT';
  return `is refused${formatReadFailure(isFailure ? error.cause : error)}`;
}

function describeKeys(keys: readonly string[], setting: string): Finding {
  if (keys.length === 0) return ok('listing', 'no files yet');
  const listed = keys.slice(0, LISTED_KEYS);
  const originals = listed.filter((each) => isOriginKey(each)).length;
  const first = keys.length > LISTED_KEYS ? 'the first ' : '';
  const all = `${first}${countOf(listed.length, 'file')}`;
  if (originals > 0) return ok('listing', `${all}, ${countOf(originals, 'original')}`);
  return fault(
    'listing',
    `${all}, but no original: the first key is "${keys[0]}". Is ${setting} right?`,
  );
}
