import { createHash } from 'node:crypto';
import { MediaError } from '../../contract/errors.ts';
import {
  CDN_TOKEN,
  canonicalUrlOf,
  type ExternalPolicy,
  examineExternalUrl,
  readUrl,
} from '../../contract/external-url.ts';
import type { FetchOutcome } from '../../pipeline/meter.ts';
import type { Opened, OpenOptions, Source, Unchanged } from '../../pipeline/ports.ts';
import { SiteFailure, siteError } from '../../pipeline/site-failure.ts';
import { readLastModified } from '../origin-object.ts';
import type { SiteAnswer, SiteExchange } from './exchange.ts';
import {
  type FreshnessBounds,
  readEntityTag,
  readFraming,
  readFreshness,
  readLastModifiedText,
  readRangeValidator,
  readRedirect,
} from './response.ts';

/** Settings of `RemoteSites`. */
export interface RemoteSitesOptions extends ExternalPolicy, FreshnessBounds {
  readonly exchange: SiteExchange;
  /** Version of this program, for `User-Agent`. */
  readonly version: string;
  /** Time after which no redirect is followed any more, in milliseconds. */
  readonly chainTimeoutMs: number;
  /** Longest pause of a body that is passed on while its reader waits, in milliseconds. */
  readonly pauseMs: number;
  readonly noteFetch: (outcome: FetchOutcome) => void;
  /** Throws a MediaError for a redirect to a URL, in canonical form, that is blocked. */
  readonly checkRedirect?: ((url: string) => void) | undefined;
}

const MAX_REDIRECTS = 5;

type Hop = Extract<ReturnType<typeof examineExternalUrl>, { readonly kind: 'fetchable' }>;

/** The last response of a chain of redirects, and its hop. */
interface Arrival {
  readonly answer: SiteAnswer;
  readonly hop: Hop;
  readonly isConditional: boolean;
  /** URLs of all hops in order, the last one included. */
  readonly urls: ReadonlySet<string>;
}

/** Client of other sites, which may be hostile: requests contain nothing of our client. */
export class RemoteSites implements Source {
  /** A site's own tags may mean nothing. */
  readonly identity = 'digest';
  readonly #options: RemoteSitesOptions;

  constructor(options: RemoteSitesOptions) {
    this.#options = options;
  }

  /**
   * @param url canonical; or a text that is no URL, and was signed all the same
   * @throws MediaError `UNKNOWN_MEDIA` if it is missing; `ORIGIN_ERROR` or `ORIGIN_TIMEOUT`, with a `SiteFailure` as
   *   cause, for whatever else has failed or is not allowed; `OVERLOADED`; or `signal.reason`
   */
  async open(url: string, options: OpenOptions): Promise<Opened | Unchanged> {
    const { noteFetch } = this.#options;
    try {
      const response = await this.#open(url, options);
      noteFetch(response.body === undefined ? 'revalidated' : 'fetched');
      return response;
    } catch (error) {
      this.#noteFailure(error);
      throw error;
    }
  }

  async #open(startUrl: string, options: OpenOptions): Promise<Opened | Unchanged> {
    const { answer, hop, isConditional, urls } = await this.#follow(startUrl, options);
    const { status, fields, body } = answer;
    const { host } = hop;
    try {
      const freshForMs = readFreshness(fields, this.#options, Date.now());
      if (status === 304 && isConditional) {
        // The empty body is read to its end, which releases the connection.
        body.resume();
        return { freshForMs };
      }
      // No range fits an empty body.
      if (status === 416 && options.range?.first === 0) {
        throw new MediaError('RANGE_NOT_SATISFIABLE');
      }
      if (status === 404 || status === 410) throw new MediaError('UNKNOWN_MEDIA');
      const { part, sizeBytes } = readFraming(answer, options.range, host);
      const etag = readEntityTag(fields);
      const rangeValidator = readRangeValidator(fields);
      const { ifRange } = options;
      if (part !== undefined && ifRange !== undefined && rangeValidator !== ifRange) {
        throw siteError('The part is of another state.', { reason: 'response', host });
      }
      const lastModified = readLastModifiedText(fields);
      const validators = { etag, lastModified, urlDigests: [...urls].map(digestOf) };
      body.once('error', (error) => this.#noteBrokenBody(error, options.signal));
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
  }

  async #follow(startUrl: string, options: OpenOptions): Promise<Arrival> {
    const { chainTimeoutMs } = this.#options;
    const visited = new Set<string>();
    const beganMs = performance.now();
    let hop = this.#examine(startUrl);
    for (;;) {
      const { url, host } = hop;
      const refuse = (message: string): MediaError =>
        siteError(message, { reason: 'redirect', host });
      if (visited.has(url.href)) throw refuse('The redirects go in a circle.');
      if (visited.size > MAX_REDIRECTS) throw refuse(`There are over ${MAX_REDIRECTS} redirects.`);
      visited.add(url.href);
      const arrival = { ...(await this.#ask(hop, options)), urls: visited };
      const { body } = arrival.answer;
      try {
        const location = readRedirect(arrival.answer, host);
        if (location === undefined) return arrival;
        hop = this.#examine(location, hop);
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
  }

  /** Checks a URL, which perhaps a redirect has named, before any lookup. */
  #examine(text: string, from?: Hop): Hop {
    // Control characters are refused, not dropped as by the parser.
    const resolved = from && !/\p{Cc}/u.test(text) ? readUrl(text, from.url) : undefined;
    const absolute = resolved?.href ?? text;
    const target = examineExternalUrl(absolute, this.#options);
    // Blocks name URLs in canonical form, whatever form the site wrote.
    if (from !== undefined) this.#options.checkRedirect?.(canonicalUrlOf(absolute) ?? absolute);
    if (target.kind === 'fetchable') return target;
    const host = readUrl(absolute)?.hostname;
    const where = from === undefined ? '' : `, in a redirect of ${from.host}`;
    if (target.kind === 'own') {
      const ownUrl = from && absolute;
      throw siteError(`The URL is our own${where}.`, { reason: 'url', host, ownUrl });
    }
    const reason = target.reason === 'host not allowed' ? 'host' : 'url';
    throw siteError(`The URL may not be fetched: ${target.reason}${where}.`, { reason, host });
  }

  async #ask(hop: Hop, options: OpenOptions): Promise<Omit<Arrival, 'urls'>> {
    const { exchange, version, pauseMs } = this.#options;
    const { known, range, ifRange, isHeld = false, signal } = options;
    // Validators are sent only to the URL that issued them: another one could only guess.
    const isConditional = known !== undefined && known.urlDigests.at(-1) === digestOf(hop.url.href);
    const headers = {
      'user-agent': `Darkroom/${version} (media proxy)`,
      accept: 'image/*, video/*, audio/*',
      'accept-encoding': 'identity',
      'cdn-loop': CDN_TOKEN,
      ...(isConditional && known.etag !== undefined && { 'if-none-match': known.etag }),
      ...(isConditional && known.lastModified && { 'if-modified-since': known.lastModified }),
      ...(range && { range: `bytes=${range.first}-${range.last ?? ''}` }),
      ...(range && ifRange !== undefined && { 'if-range': ifRange }),
    };
    const { url, host } = hop;
    const answer = await exchange.ask({
      ...{ url, host, headers, signal },
      pauseMs: isHeld ? 0 : pauseMs,
    });
    return { answer, hop, isConditional };
  }

  #noteFailure(error: unknown): void {
    const { noteFetch } = this.#options;
    const code = error instanceof MediaError ? error.code : undefined;
    // The whole is asked for then.
    if (code === 'RANGE_NOT_SATISFIABLE') return;
    if (code === 'UNKNOWN_MEDIA') noteFetch('missing');
    else if (code === 'OVERLOADED') noteFetch('overloaded');
    else if (error instanceof MediaError && error.cause instanceof SiteFailure) {
      noteFetch(error.cause.details.reason);
    } else noteFetch('stopped');
  }

  /** Counts a body that ends too early, which was counted as fetched; not if the reader has left. */
  #noteBrokenBody(error: Error, signal: AbortSignal): void {
    if (signal.aborted || error.name === 'AbortError') return;
    this.#options.noteFetch(error.name === 'BodyTimeoutError' ? 'time' : 'response');
  }
}

function digestOf(url: string): string {
  return createHash('sha256').update(url).digest('base64url');
}
