import { createHash } from 'node:crypto';
import type { BlockKind } from '../../contract/block-order.ts';
import { formatCauses, MediaError } from '../../contract/errors.ts';
import type { PurgeOrder } from '../../contract/purge-order.ts';
import { externalKeyOf } from '../../contract/signing/external-path.ts';
import type { Digests } from '../originals/digests.ts';
import type { OriginalRecords } from '../originals/records.ts';
import type { Log } from '../ports.ts';
import type { Purger } from '../results/purger.ts';
import type { BlockGuard } from './block-guard.ts';
import { type BlockWatcher, ListUnavailable } from './block-list.ts';

interface BlockPurgeParts {
  readonly records: OriginalRecords;
  readonly digests: Digests;
  readonly purger: Purger;
  readonly log: Log;
}

/**
 * Creates the watcher that purges what is blocked: in this process, and in the stores and at the edge where the order came
 * to this process. An order that the edge does not get fails, to be repeated; the block holds.
 */
export function createBlockPurge(
  guard: BlockGuard,
  { records, digests, purger, log }: BlockPurgeParts,
): BlockWatcher {
  const warn = (failure: unknown): void => {
    const reason = formatCauses(failure).slice(2);
    log.warn({ reason }, 'a block holds, but what it names is not purged everywhere');
  };
  const purgeEverywhere = async (order: PurgeOrder): Promise<void> => {
    const { storeFailure, edgeFailure } = await purger.purge(order);
    if (storeFailure !== undefined) warn(storeFailure);
    if (edgeFailure === undefined) return;
    warn(edgeFailure);
    if (edgeFailure instanceof MediaError) throw edgeFailure;
    throw new ListUnavailable('The edge does not get the purge.', { cause: edgeFailure });
  };
  // It was sent before anyone knew that it is blocked: the CDN may have kept it.
  digests.onHashed = async (originKey, etag, sha256) => {
    if (!guard.isDigestBlocked(sha256)) return;
    await purgeEverywhere({ kind: 'originals', originKeys: [originKey] }).catch(() => undefined); // logged
    digests.note(originKey, etag, sha256);
  };
  return async (blocked, isOwn) => {
    const valuesOf = (kind: BlockKind): string[] =>
      blocked.filter((subject) => subject.kind === kind).map(({ value }) => value);
    const urls = valuesOf('external');
    const byDigest = records.findByDigest(new Set(valuesOf('sha256')));
    const remembered = [...records.findKeysSentBy(new Set(urls.map(digestOf))), ...byDigest.keys()];
    const originKeys = [...valuesOf('key'), ...urls.map(externalKeyOf), ...remembered];
    const folders = valuesOf('prefix');
    const keys = new Set(originKeys);
    try {
      if (keys.size > 0 || folders.length > 0) {
        const order = { kind: 'originals', originKeys: [...keys], folders } as const;
        if (isOwn) await purgeEverywhere(order);
        else {
          purger.forget(order);
          // The replica that took the order does not know what this one remembers.
          const known = { kind: 'originals', originKeys: remembered } as const;
          if (remembered.length > 0) await purger.passOn(known).catch(warn);
        }
      }
    } finally {
      // The purge has forgotten by what they are blocked.
      for (const [key, { etag, sha256 }] of byDigest) digests.note(key, etag, sha256);
      guard.cutOff();
    }
  };
}

function digestOf(url: string): string {
  return createHash('sha256').update(url).digest('base64url');
}
