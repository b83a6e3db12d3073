/** A purge at the CDN. Times are milliseconds since 1970: they outlive the process. */
export interface CdnPurge {
  readonly id: string;
  status: 'pending' | 'done' | 'failed';
  readonly requestedAtMs: number;
  /** Tags, until the purge ends. */
  tags: readonly string[];
  /** The CDN receives all tags twice; see `CdnPurger`. */
  round: 1 | 2;
  dueAtMs: number;
  /** Tags that the CDN has not accepted in this round. */
  left: Set<string>;
  /** Time at which the CDN last accepted a tag of this purge, or at which the purge ended. */
  changedAtMs: number;
  reason?: string | undefined;
  /** Time until which only the process with the lease sends the purge, with a random fraction of a millisecond. */
  leaseUntilMs: number;
}

/** A purge as operators see it; `reason` is the error of the CDN's API. */
export type PurgeState = Pick<CdnPurge, 'id' | 'status' | 'reason'>;

export function stateOf({ id, status, reason }: CdnPurge): PurgeState {
  return { id, status, ...(reason !== undefined && { reason }) };
}

/** Notes tags that the CDN has accepted; returns whether the round is over. After the second one, the purge is done. */
export function acceptTags(
  purge: CdnPurge,
  tags: ReadonlySet<string>,
  nowMs: number,
  secondRoundAfterMs: number,
): boolean {
  for (const tag of tags) purge.left.delete(tag);
  purge.changedAtMs = nowMs;
  if (purge.left.size > 0) return false;
  if (purge.round === 2) {
    endPurge(purge, 'done', nowMs);
  } else {
    purge.round = 2;
    purge.dueAtMs = nowMs + secondRoundAfterMs;
    purge.left = new Set(purge.tags);
  }
  return true;
}

export function endPurge(purge: CdnPurge, status: 'done' | 'failed', nowMs: number): void {
  purge.status = status;
  if (status === 'done') purge.reason = undefined;
  purge.changedAtMs = nowMs;
  purge.tags = [];
  purge.left = new Set();
}

/** Tags are joined, since formatting long arrays is slow. */
type StoredPurge = Omit<CdnPurge, 'tags' | 'left'> & Record<'tags' | 'left', string>;

/** Formats the shared object of a purge. */
export function formatPurge(purge: CdnPurge): Buffer {
  const left = [...purge.left].join(' ');
  const stored: StoredPurge = { ...purge, tags: purge.tags.join(' '), left };
  return Buffer.from(`${JSON.stringify(stored)}\n`);
}

/** Returns `undefined` for a damaged object, which must not stop the other purges. */
export function parsePurge(bytes: Uint8Array): CdnPurge | undefined {
  const stored = parseJson<StoredPurge>(Buffer.from(bytes).toString());
  return typeof stored?.leaseUntilMs === 'number' ? restore(stored) : undefined;
}

/** Parses a journal of an earlier release: a line about its owner, then all purges. Returns `undefined` if it is damaged. */
export function parseEarlierJournal(bytes: Uint8Array): readonly CdnPurge[] | undefined {
  type Row = Omit<StoredPurge, 'requestedAtMs' | 'leaseUntilMs'> & { readonly askedAtMs: number };
  const [, line = ''] = Buffer.from(bytes).toString().split('\n');
  return parseJson<readonly Row[]>(line)?.map(({ askedAtMs, ...row }) =>
    restore({ ...row, requestedAtMs: askedAtMs, leaseUntilMs: 0 }),
  );
}

function restore({ tags, left, ...rest }: StoredPurge): CdnPurge {
  return { ...rest, tags: splitTags(tags), left: new Set(splitTags(left)) };
}

function splitTags(tags: string): string[] {
  return tags === '' ? [] : tags.split(' ');
}

function parseJson<Value>(text: string): Value | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
