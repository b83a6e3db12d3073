import { createHash } from 'node:crypto';
import type { BlockKind } from '../../contract/block-request.ts';
import { formatCauses, MediaError } from '../../contract/errors.ts';
import { externalKeyOf } from '../../contract/signing/external-path.ts';
import { isNamespaced } from '../originals/backend.ts';
import type { OriginalServices } from '../originals/originals.ts';
import type { OriginalRecords } from '../originals/records.ts';
import type { PurgeOptions, Purger } from '../results/purger.ts';
import type { BlockGuard, SentOriginal } from './block-guard.ts';
import { type BlockWatcher, ListUnavailable } from './block-list.ts';

type RememberedDigests = ReturnType<OriginalRecords['findByDigest']>;

/**
 * Creates the watcher that purges blocked originals from this process. It also purges the store and the CDN if this
 * process received the request, or remembers a blocked digest or redirect. If the CDN does not accept the purge, the
 * request fails so that it is repeated; the block stays in effect.
 */
export function createBlockPurge(
  guard: BlockGuard,
  { records, details, originals, log }: OriginalServices,
  purger: Purger,
): BlockWatcher {
  const warn = (failure: unknown): void => {
    const reason = formatCauses(failure).slice(2);
    log.warn({ reason }, 'block in effect, but its originals were not purged everywhere');
  };
  const purge = async (
    scope: PurgeOptions['scope'],
    keys: readonly string[],
    prefixes: readonly string[] = [],
  ): Promise<void> => {
    const namespaced = keys.filter(isNamespaced);
    if (scope === 'everywhere' && namespaced.length > 0) await purge('process', namespaced);
    const originKeys = scope === 'process' ? keys : keys.filter((key) => !isNamespaced(key));
    if (originKeys.length === 0 && prefixes.length === 0) return;
    const request = { kind: 'originals', originKeys: [...new Set(originKeys)], prefixes } as const;
    const { storeFailure, cdnFailure } = await purger.purge(request, { scope, keepsDigests: true });
    if (storeFailure !== undefined) warn(storeFailure);
    if (cdnFailure === undefined) return;
    warn(cdnFailure);
    if (cdnFailure instanceof MediaError) throw cdnFailure;
    throw new ListUnavailable('The CDN did not receive the purge.', { cause: cdnFailure });
  };
  /** Stores digests again, which a purge removes with the results. */
  const storeAgain = (remembered: RememberedDigests): void => {
    for (const [originKey, { etag, sha256 }] of remembered) {
      details.store({ originKey }, etag, 'sha256', sha256);
    }
  };
  // The CDN may have stored an original that was sent before its digest was known.
  originals.hashes.onHashed = async (originKey, etag, sha256) => {
    if (!guard.isDigestBlocked(sha256)) return;
    guard.destroyBlocked(new Map([[originKey, sha256]]));
    await purge('everywhere', [originKey]).catch(() => undefined); // logged
    details.store({ originKey }, etag, 'sha256', sha256);
  };
  /** Finds originals in transit whose digest is only in the store. */
  const findStored = async (blocked: ReadonlySet<string>): Promise<ReadonlyMap<string, string>> => {
    const { signal } = new AbortController();
    const found = new Map<string, string>();
    const find = async ({ originKey, etag, sha256 }: SentOriginal): Promise<void> => {
      if (sha256 !== undefined || etag === undefined) return;
      const stored = await details.find({ originKey }, etag, 'sha256', signal);
      if (stored !== undefined && blocked.has(stored)) found.set(originKey, stored);
    };
    if (blocked.size > 0) await Promise.all(guard.sent.map(find));
    return found;
  };
  return async (blocked, isOwn) => {
    const valuesOf = (kind: BlockKind): string[] =>
      blocked.filter((subject) => subject.kind === kind).map(({ value }) => value);
    const urls = valuesOf('external');
    const sha256 = new Set(valuesOf('sha256'));
    const byDigest = records.findByDigest(sha256);
    guard.destroyBlocked(new Map([...byDigest].map(([key, known]) => [key, known.sha256])));
    const remembered = [
      ...records.findKeysFetchedFrom(new Set(urls.map(digestOf))),
      ...byDigest.keys(),
    ];
    const takeDown = async () => {
      try {
        const named = [...valuesOf('key'), ...urls.map(externalKeyOf)];
        const prefixes = valuesOf('prefix');
        if (isOwn) await purge('everywhere', [...named, ...remembered], prefixes);
        // The replica that received the request does not know what this one remembers.
        else
          await Promise.all([purge('process', named, prefixes), purge('everywhere', remembered)]);
      } finally {
        storeAgain(byDigest);
      }
    };
    const takeDownStored = async () => {
      const stored = await findStored(sha256);
      guard.destroyBlocked(stored);
      await purge('everywhere', [...stored.keys()]);
      storeAgain(records.findByDigest(new Set(stored.values())));
    };
    await Promise.all([takeDown(), takeDownStored()]);
  };
}

function digestOf(url: string): string {
  return createHash('sha256').update(url).digest('base64url');
}
