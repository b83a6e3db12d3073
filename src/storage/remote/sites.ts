import { createHash } from 'node:crypto';
import { MediaError } from '../../contract/errors.ts';
import {
  CDN_TOKEN,
  canonicalUrlOf,
  checkExternalUrl,
  type ExternalPolicy,
  readUrl,
} from '../../contract/external-url.ts';
import type { FetchOutcome } from '../../pipeline/meter.ts';
import type { Opened, OpenOptions, Source, Unchanged } from '../../pipeline/ports.ts';
import { SiteFailure, siteError } from '../../pipeline/site-failure.ts';
import { readLastModified } from '../origin-object.ts';
import type { SiteClient, SiteResponse } from './exchange.ts';
import {
  type FreshnessBounds,
  readEntityTag,
  readFraming,
  readFreshness,
  readLastModifiedText,
  readRangeValidator,
  readRedirect,
} from './response.ts';

const MAX_REDIRECTS = 5;

type Hop = Extract<ReturnType<typeof checkExternalUrl>, { readonly kind: 'fetchable' }>;

interface FinalResponse {
  readonly response: SiteResponse;
  readonly hop: Hop;
  readonly isConditional: boolean;
  /** URLs of all hops in order, including the last. */
  readonly urls: ReadonlySet<string>;
}

/**
 * Creates the source of external media. Other sites may be hostile, and receive no data of our client.
 * @param limits.chainTimeoutMs time after which no redirect is followed
 * @param limits.pauseMs maximum pause of a passthrough body while its reader waits
 * @param checkRedirect throws a MediaError if the canonical URL of a redirect is blocked
 */
export function createRemoteSites(
  settings: ExternalPolicy & FreshnessBounds & { readonly version: string },
  { chainTimeoutMs, pauseMs }: { readonly chainTimeoutMs: number; readonly pauseMs: number },
  client: SiteClient,
  countFetch: (outcome: FetchOutcome) => void,
  checkRedirect: (url: string) => void,
): Source {
  /** Checks a URL, or the target of a redirect from another hop, before any lookup. */
  const validateHop = (text: string, from?: Hop): Hop => {
    // A target with control characters is invalid; the parser would drop them.
    const resolved = from && !/\p{Cc}/u.test(text) ? readUrl(text, from.url) : undefined;
    const absolute = resolved?.href ?? text;
    const target = checkExternalUrl(absolute, settings);
    // Blocks contain canonical URLs.
    if (from !== undefined) checkRedirect(canonicalUrlOf(absolute) ?? absolute);
    if (target.kind === 'fetchable') return target;
    const host = readUrl(absolute)?.hostname;
    const where = from === undefined ? '' : `, in a redirect of ${from.host}`;
    if (target.kind === 'local') {
      const localUrl = from && absolute;
      throw siteError(`The URL is our own${where}.`, { reason: 'url', host, localUrl });
    }
    const reason = target.reason === 'host not allowed' ? 'host' : 'url';
    throw siteError(`The URL may not be fetched: ${target.reason}${where}.`, { reason, host });
  };

  const fetchHop = async (hop: Hop, options: OpenOptions): Promise<Omit<FinalResponse, 'urls'>> => {
    const { known, range, ifRange, isBuffered = false, signal } = options;
    // Only the URL that issued validators receives them.
    const isConditional = known !== undefined && known.urlDigests.at(-1) === digestOf(hop.url.href);
    const headers = {
      'user-agent': `Darkroom/${settings.version} (media proxy)`,
      accept: 'image/*, video/*, audio/*',
      'accept-encoding': 'identity',
      'cdn-loop': CDN_TOKEN,
      ...(isConditional && known.etag !== undefined && { 'if-none-match': known.etag }),
      ...(isConditional && known.lastModified && { 'if-modified-since': known.lastModified }),
      ...(range && { range: `bytes=${range.first}-${range.last ?? ''}` }),
      ...(range && ifRange !== undefined && { 'if-range': ifRange }),
    };
    const { url, host } = hop;
    const response = await client.fetch({
      url,
      host,
      headers,
      signal,
      pauseMs: isBuffered ? 0 : pauseMs,
    });
    return { response, hop, isConditional };
  };

  const follow = async (startUrl: string, options: OpenOptions): Promise<FinalResponse> => {
    const visited = new Set<string>();
    const beganMs = performance.now();
    let hop = validateHop(startUrl);
    for (;;) {
      const { url, host } = hop;
      const refuse = (message: string): MediaError =>
        siteError(message, { reason: 'redirect', host });
      if (visited.has(url.href)) throw refuse('The redirects go in a circle.');
      if (visited.size > MAX_REDIRECTS) throw refuse(`There are over ${MAX_REDIRECTS} redirects.`);
      visited.add(url.href);
      const fetched = await fetchHop(hop, options);
      const { body } = fetched.response;
      try {
        const location = readRedirect(fetched.response, host);
        if (location === undefined) return { ...fetched, urls: visited };
        hop = validateHop(location, hop);
        if (url.protocol === 'https:' && hop.url.protocol === 'http:') {
          throw refuse('The redirect leads from https to http.');
        }
        if (performance.now() - beganMs > chainTimeoutMs) {
          throw siteError('The redirects take too long.', { reason: 'time', host });
        }
      } catch (error) {
        body.destroy();
        throw error;
      }
      body.destroy();
    }
  };

  /** Counts a body that breaks off after it was counted as fetched, unless the reader has left. */
  const countBrokenBody = (error: Error, signal: AbortSignal): void => {
    if (signal.aborted || error.name === 'AbortError') return;
    countFetch(error.name === 'BodyTimeoutError' ? 'time' : 'response');
  };

  const open = async (startUrl: string, options: OpenOptions): Promise<Opened | Unchanged> => {
    const { response, hop, isConditional, urls } = await follow(startUrl, options);
    const { status, fields, body } = response;
    const { host } = hop;
    try {
      const freshForMs = readFreshness(fields, settings, Date.now());
      if (status === 304 && isConditional) {
        // Reading the empty body frees the connection.
        body.resume();
        return { freshForMs };
      }
      // Only an empty body lacks the first byte.
      if (status === 416 && options.range?.first === 0) {
        throw new MediaError('RANGE_NOT_SATISFIABLE');
      }
      if (status === 404 || status === 410) throw new MediaError('UNKNOWN_MEDIA');
      const { part, sizeBytes } = readFraming(response, options.range, host);
      const etag = readEntityTag(fields);
      const rangeValidator = readRangeValidator(fields);
      const { ifRange } = options;
      if (part !== undefined && ifRange !== undefined && rangeValidator !== ifRange) {
        throw siteError('The range is of another version.', { reason: 'response', host });
      }
      const lastModified = readLastModifiedText(fields);
      const validators = { etag, lastModified, urlDigests: [...urls].map(digestOf) };
      body.once('error', (error) => countBrokenBody(error, options.signal));
      return {
        part,
        sizeBytes,
        etag: etag?.startsWith('"') ? etag : undefined,
        rangeValidator,
        validators,
        lastModified: readLastModified(lastModified ? new Date(lastModified) : undefined),
        freshForMs,
        body,
      };
    } catch (error) {
      body.destroy();
      throw error;
    }
  };

  return {
    // Tags of other sites do not identify bytes reliably.
    identity: 'digest',
    /**
     * @param url canonical URL, or other signed text
     * @throws MediaError `UNKNOWN_MEDIA` if the media is missing; `ORIGIN_ERROR` or `ORIGIN_TIMEOUT`, with a
     *   `SiteFailure` as cause, if the fetch failed or is not permitted; `OVERLOADED`; or `signal.reason`
     */
    open: async (url, options) => {
      try {
        const opened = await open(url, options);
        countFetch(opened.body === undefined ? 'revalidated' : 'fetched');
        return opened;
      } catch (error) {
        const outcome = outcomeOf(error);
        if (outcome !== undefined) countFetch(outcome);
        throw error;
      }
    },
  };
}

/** Returns the outcome of a failed fetch; `undefined` if a fetch of the complete file follows. */
function outcomeOf(error: unknown): FetchOutcome | undefined {
  const code = error instanceof MediaError ? error.code : undefined;
  if (code === 'RANGE_NOT_SATISFIABLE') return undefined;
  if (code === 'UNKNOWN_MEDIA') return 'missing';
  if (code === 'OVERLOADED') return 'overloaded';
  const cause = error instanceof MediaError ? error.cause : undefined;
  return cause instanceof SiteFailure ? cause.details.reason : 'stopped';
}

function digestOf(url: string): string {
  return createHash('sha256').update(url).digest('base64url');
}
