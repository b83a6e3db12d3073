import { randomBytes } from 'node:crypto';
import type { Config } from '../../config/config.ts';
import { describePlace } from '../../config/variables/storage-settings.ts';
import { formatCauses, formatReadFailure, MediaError } from '../../contract/errors.ts';
import { isOriginKey } from '../../contract/media-path.ts';
import { withDeadline } from '../../pipeline/abort.ts';
import { readSize } from '../../pipeline/originals/open-body.ts';
import { AccessRefused, type ListedOriginal, type Source } from '../../pipeline/ports.ts';
import { openListing, openOrigin } from '../../storage/open-storage.ts';
import { type Finding, fault, ok } from './finding.ts';

/** Most keys that are listed. */
const LISTED_KEYS = 100;

/** Checks whether originals can be read, and which exist; yields each finding as soon as it is known. */
export async function* checkOrigin(config: Config, signal: AbortSignal): AsyncGenerator<Finding> {
  const { storage, originLimits } = config;
  const onTimeout = () => new MediaError('ORIGIN_TIMEOUT');
  const inTime: InTime = (work) =>
    withDeadline(originLimits.firstByteTimeoutMs, signal, onTimeout, work);
  const where = describePlace(storage);
  yield ok(
    'storage',
    storage.kind === 's3' && storage.prefix ? `${where}, ${storage.prefix}` : where,
  );

  const listing = await listKeys(config, inTime, signal);
  let origin: Source;
  try {
    origin = await openOrigin(config);
  } catch (error) {
    yield fault('storage', `${where} cannot be opened${formatCauses(error)}`);
    return;
  }
  const keys = listing.kind === 'listed' ? listing.keys : [];
  const mayNotList = listing.kind === 'failed' && listing.cause instanceof AccessRefused;
  const tryKey = (key: string) => tryReading(origin, key, inTime, signal);
  const absentKey = `attachments/0/0/darkroom-check-${randomBytes(8).toString('hex')}`;
  yield describeAbsence(absentKey, await tryKey(absentKey), mayNotList);
  yield describeListing(listing, mayNotList, storage.kind);
  const key = keys.find((each) => isOriginKey(each));
  if (key !== undefined) yield describeReading(key, await tryKey(key));
}

/** Runs work, and fails with `ORIGIN_TIMEOUT` after the deadline of the origin, even if a hanging disk ignores the signal. */
type InTime = <Result>(work: (within: AbortSignal) => Promise<Result>) => Promise<Result>;

type Listing =
  | {
      readonly kind: 'listed';
      readonly keys: readonly string[];
      /** Whether there are more keys. */
      readonly isPart: boolean;
    }
  | { readonly kind: 'failed'; readonly cause: unknown };

async function listKeys(config: Config, inTime: InTime, signal: AbortSignal): Promise<Listing> {
  const keys: string[] = [];
  let isPart = false;
  const visit = ({ key }: ListedOriginal): boolean => {
    isPart = keys.length === LISTED_KEYS;
    if (!isPart) keys.push(key);
    return !isPart;
  };
  try {
    await inTime(async (within) => (await openListing(config)).list('', visit, within));
    return { kind: 'listed', keys, isPart };
  } catch (error) {
    signal.throwIfAborted();
    const isFailure = error instanceof MediaError && error.code !== 'ORIGIN_TIMEOUT';
    return { kind: 'failed', cause: isFailure ? error.cause : error };
  }
}

function describeAbsence(key: string, outcome: ReadOutcome, mayNotList: boolean): Finding {
  if (outcome.kind === 'absent') return ok('missing original', 'is reported as missing');
  if (outcome.kind === 'read') return fault('missing original', `there is something at ${key}`);
  const consequence = mayNotList
    ? '; without the right to list (s3:ListBucket), S3 answers 403 for a missing original, which clients get as 502 instead of 404'
    : '';
  return fault('missing original', `is reported as a failure${outcome.reason}${consequence}`);
}

function describeReading(key: string, outcome: ReadOutcome): Finding {
  if (outcome.kind === 'read') return ok('reading', `${key} has ${outcome.sizeBytes} bytes`);
  const reason = outcome.kind === 'failed' ? outcome.reason : ': it is listed, and not there';
  return fault('reading', `${key} cannot be read${reason}`);
}

type ReadOutcome =
  | { readonly kind: 'read'; readonly sizeBytes: number }
  | { readonly kind: 'absent' }
  | { readonly kind: 'failed'; readonly reason: string };

async function tryReading(
  origin: Source,
  key: string,
  inTime: InTime,
  signal: AbortSignal,
): Promise<ReadOutcome> {
  try {
    const sizeBytes = await inTime((within) => readSize(origin, key, within));
    return { kind: 'read', sizeBytes };
  } catch (error) {
    signal.throwIfAborted();
    const isAbsent = error instanceof MediaError && error.code === 'UNKNOWN_MEDIA';
    return isAbsent ? { kind: 'absent' } : { kind: 'failed', reason: formatReadFailure(error) };
  }
}

function describeListing(
  listing: Listing,
  mayNotList: boolean,
  storage: 's3' | 'filesystem',
): Finding {
  if (listing.kind === 'failed') {
    const advice = mayNotList ? '; grant s3:ListBucket' : '';
    return fault('listing', `is refused${formatReadFailure(listing.cause)}${advice}`);
  }
  const { keys, isPart } = listing;
  if (keys.length === 0) return ok('listing', 'nothing is there yet');
  const originals = keys.filter((each) => isOriginKey(each)).length;
  const all = isPart ? `the first ${keys.length} files` : `${keys.length} files`;
  if (originals > 0) return ok('listing', `${all}, ${originals} of them originals`);
  const setting = storage === 's3' ? 'S3_PREFIX' : 'STORAGE_DIR';
  return fault(
    'listing',
    `none of ${all} has the key of an original; the first is "${keys[0]}". Is ${setting} right?`,
  );
}
