/** A purge at the CDN. Times are in milliseconds since 1970, so that other processes can use them. */
export interface CdnPurge {
  readonly id: string;
  status: 'pending' | 'done' | 'failed';
  readonly requestedAtMs: number;
  tags: readonly string[];
  /** Each round sends all tags; see `CdnPurger`. */
  round: 1 | 2;
  dueAtMs: number;
  /** Tags that the CDN has not accepted in this round. */
  left: Set<string>;
  /** Time of the last progress, or of the end. */
  changedAtMs: number;
  reason?: string | undefined;
  /** End of the lease, until which no other process sends the purge; a random fraction distinguishes its writer. */
  leaseUntilMs: number;
}

/** State for operators; `reason` is the last error of the CDN's API. */
export type PurgeState = Pick<CdnPurge, 'id' | 'status' | 'reason'>;

export function stateOf({ id, status, reason }: CdnPurge): PurgeState {
  return { id, status, ...(reason !== undefined && { reason }) };
}

/** Removes accepted tags; returns whether the round is over. The second round ends the purge. */
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

/** Tags are joined, since `JSON.stringify` is slow for long arrays. */
type StoredPurge = Omit<CdnPurge, 'tags' | 'left'> & Record<'tags' | 'left', string>;

export function formatPurge(purge: CdnPurge): Buffer {
  const left = [...purge.left].join(' ');
  const stored: StoredPurge = { ...purge, tags: purge.tags.join(' '), left };
  return Buffer.from(`${JSON.stringify(stored)}\n`);
}

/** Returns `undefined` for a damaged object, which must not stop other purges. */
export function parsePurge(bytes: Uint8Array): CdnPurge | undefined {
  const stored = parseJson<StoredPurge>(Buffer.from(bytes).toString());
  return typeof stored?.leaseUntilMs === 'number' ? restore(stored) : undefined;
}

/**
 * Parses a journal of an earlier release: a line about its owner, then all purges. Returns `undefined` if it is
 * damaged.
 */
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
