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
  /** Time when the CDN last accepted a tag of this purge, or when the purge ended. */
  changedAtMs: number;
  reason?: string | undefined;
  /** Time until which only the process with the lease sends the purge. */
  leaseUntilMs: number;
}

/** Tags are joined, since long arrays take long to format. */
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
