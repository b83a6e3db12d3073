import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import type { PurgeRequest } from './purge-request.ts';

export interface CdnRow {
  readonly header: string;
  readonly separator: string;
  readonly tagsPerCall: number;
  /** Token bucket of calls: its size, and the interval in which it gains a token, in milliseconds. */
  readonly pace: { readonly burst: number; readonly intervalMs: number };
}

/** Supported CDNs (contract §15), with their documented limits. */
export const cdnRows = {
  // Free plan: 100 tags a call, 5 calls a minute from a bucket of 25
  // (developers.cloudflare.com/cache/how-to/purge-cache, "Availability and limits"; /purge-by-tags).
  cloudflare: {
    header: 'cache-tag',
    separator: ',',
    tagsPerCall: 100,
    pace: { burst: 25, intervalMs: 12_000 },
  },
  // 256 keys a call, 100 000 keys an hour, a header of 16 384 bytes (fastly.com/documentation: "Purging", "Surrogate-Key",
  // "Resource limits"). A full bucket and an hour of tokens are 390 calls, and no call waits longer than 12 seconds.
  fastly: {
    header: 'surrogate-key',
    separator: ' ',
    tagsPerCall: 256,
    pace: { burst: 90, intervalMs: 12_000 },
  },
  // One tag a call, 5 exact purges a second from a bucket of 120, a header of 1 024 bytes (docs.bunny.net/cdn/purge-cache,
  // "Rate limits").
  bunny: {
    header: 'cdn-tag',
    separator: ',',
    tagsPerCall: 1,
    pace: { burst: 120, intervalMs: 200 },
  },
  // 3 000 items in progress, or three calls, and 50 tags per object (CloudFront Developer Guide, "Concurrent invalidation
  // request maximum", "What you need to know when invalidating tags"). AWS throttles bursts at an undocumented rate.
  cloudfront: {
    header: 'cache-tag',
    separator: ',',
    tagsPerCall: 1_000,
    pace: { burst: 1, intervalMs: 1_000 },
  },
} as const satisfies Readonly<Record<string, CdnRow>>;

export type CdnName = keyof typeof cdnRows;

export const cdnNames = Object.keys(cdnRows) as readonly CdnName[];

/**
 * Maximum number of tags of a response: the limit of CloudFront and of Bunny's header. Deeper directories share the tag of
 * their deepest tagged parent.
 */
const MAX_TAGS = 50;

/**
 * Tags by which a CDN finds the responses of an original, and of all originals in a directory. A tag is an HMAC, so it does
 * not reveal the key; all replicas share its secret.
 */
export class CdnTags {
  readonly #row: CdnRow;
  readonly #secret: KeyObject;

  constructor(cdn: CdnName, secret: Uint8Array) {
    this.#row = cdnRows[cdn];
    this.#secret = createSecretKey(secret);
  }

  fieldOf(...originKeys: readonly string[]): readonly [name: string, value: string] {
    const texts = new Set([...originKeys, ...originKeys.flatMap(parentsOf)]);
    const tags = [...texts].slice(0, MAX_TAGS).map((text) => this.#tagOf(text));
    return [this.#row.header, tags.join(this.#row.separator)];
  }

  /** Returns the tags of a purge; for single renderings, those of their originals. */
  ofPurge(request: PurgeRequest): readonly string[] {
    const { originKeys, prefixes = [] } =
      request.kind === 'originals'
        ? request
        : { originKeys: request.renderings.map((rendering) => rendering.originKey) };
    const tagged = prefixes.map((prefix) => parentsOf(prefix).at(-1) ?? prefix);
    return [...new Set([...originKeys, ...tagged])].map((text) => this.#tagOf(text));
  }

  #tagOf(text: string): string {
    return createHmac('sha256', this.#secret).update(text).digest('hex').slice(0, 16);
  }
}

/** Returns the parent directories of a key that have tags, outermost first, with trailing slashes. */
function parentsOf(key: string): string[] {
  const parents: string[] = [];
  for (let end = key.indexOf('/'); end >= 0; end = key.indexOf('/', end + 1)) {
    if (parents.length === MAX_TAGS - 1) break;
    parents.push(key.slice(0, end + 1));
  }
  return parents;
}
