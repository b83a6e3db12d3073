import { createHash } from 'node:crypto';
import { CDN_TOKEN } from '../../contract/cdn-loop.ts';
import { MediaError } from '../../contract/errors.ts';
import { type ExternalPolicy, examineExternalUrl } from '../../contract/external-url.ts';
import type { SiteMeter } from '../../pipeline/meter.ts';
import type { SiteRequest, SiteResponse, Sites } from '../../pipeline/originals/sites.ts';
import { SiteFailure, siteError } from '../../pipeline/site-failure.ts';
import { readLastModified } from '../origin-object.ts';
import { type FreshnessBounds, readFreshness } from './freshness.ts';
import type { SiteConnections } from './site-connections.ts';
import { askSite, type SiteAnswer } from './site-exchange.ts';
import { readEntityTag, readFraming, readLastModifiedText, readRedirect } from './site-response.ts';

/** What sites are asked with. */
export interface RemoteSitesParts {
  readonly connections: SiteConnections;
  readonly policy: ExternalPolicy;
  readonly freshness: FreshnessBounds;
  /** Sent as `User-Agent`. */
  readonly userAgent: string;
  /** From a connection to the head of its response, in milliseconds. */
  readonly headTimeoutMs: number;
  /** After so long, no redirect is followed any more, in milliseconds. */
  readonly chainTimeoutMs: number;
  readonly meter: SiteMeter;
}

const MAX_REDIRECTS = 5;

/** One URL of a chain. */
type Hop = Extract<ReturnType<typeof examineExternalUrl>, { readonly kind: 'fetchable' }>;

/** The last response of a chain, and whose it is. */
interface Arrival {
  readonly answer: SiteAnswer;
  readonly hop: Hop;
  readonly isConditional: boolean;
}

/**
 * Fetches from other sites, which may be anybody's and do anything. Nothing of a client goes there; what comes back
 * is believed as far as its bytes go.
 */
export class RemoteSites implements Sites {
  readonly #parts: RemoteSitesParts;

  constructor(parts: RemoteSitesParts) {
    this.#parts = parts;
  }

  async open(request: SiteRequest): Promise<SiteResponse> {
    const { meter } = this.#parts;
    try {
      const response = await this.#open(request);
      meter.noteFetch(response.kind === 'content' ? 'fetched' : 'revalidated');
      return response;
    } catch (error) {
      this.#noteFailure(error);
      throw error;
    }
  }

  async #open(request: SiteRequest): Promise<SiteResponse> {
    const { freshness } = this.#parts;
    const { answer, hop, isConditional } = await this.#follow(request);
    const { status, fields, body } = answer;
    const { host } = hop;
    try {
      const freshForMs = readFreshness(fields, freshness, Date.now());
      if (status === 304 && isConditional) {
        // It has none, and so the connection can be kept.
        body.resume();
        return { kind: 'unchanged', freshForMs };
      }
      if (status === 416 && request.range?.first === 0) {
        // No range fits an empty body.
        body.destroy();
        return await this.#open({ ...request, range: undefined });
      }
      if (status === 404 || status === 410) throw new MediaError('UNKNOWN_MEDIA');
      const { part, sizeBytes } = readFraming(answer, request.range, host);
      const etag = readEntityTag(fields);
      if (part !== undefined && request.ifRange !== undefined && etag !== request.ifRange) {
        throw siteError('The part is of another state.', { reason: 'response', host });
      }
      const lastModified = readLastModifiedText(fields);
      const validators = { etag, lastModified, urlDigest: digestOf(hop.url) };
      body.once('error', (error) => this.#noteBrokenBody(error, request.signal));
      return {
        kind: 'content',
        part,
        sizeBytes,
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

  /** Follows redirects, each checked as the first URL was, to the response that counts. */
  async #follow(request: SiteRequest): Promise<Arrival> {
    const { chainTimeoutMs } = this.#parts;
    const visited = new Set<string>();
    const beganMs = performance.now();
    let hop = this.#examine(request.url);
    for (;;) {
      const { url, host } = hop;
      const refuse = (message: string): MediaError =>
        siteError(message, { reason: 'redirect', host });
      if (visited.has(url.href)) throw refuse('The redirects go in a circle.');
      if (visited.size > MAX_REDIRECTS) throw refuse(`There are over ${MAX_REDIRECTS} redirects.`);
      visited.add(url.href);
      const arrival = await this.#ask(request, hop);
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

  /**
   * Looks at a URL before anything of it is looked up.
   *
   * @param from whose redirect has named it
   */
  #examine(text: string, from?: Hop): Hop {
    const isRelative = from !== undefined && URL.canParse(text, from.url.href);
    // A control character is refused, and not dropped as the parser does.
    const isResolved = isRelative && !/\p{Cc}/u.test(text);
    const absolute = isResolved ? new URL(text, from.url).href : text;
    const target = examineExternalUrl(absolute, this.#parts.policy);
    if (target.kind === 'fetchable') return target;
    const host = URL.canParse(absolute) ? new URL(absolute).hostname : undefined;
    const reason = target.reason === 'host not allowed' ? 'host' : 'url';
    const where = from === undefined ? '' : `, in a redirect of ${from.host}`;
    throw siteError(`The URL may not be fetched: ${target.reason}${where}.`, { reason, host });
  }

  async #ask(request: SiteRequest, hop: Hop): Promise<Arrival> {
    const { connections, headTimeoutMs, userAgent } = this.#parts;
    const { known, range, ifRange, signal } = request;
    // Validators are told to the URL alone that gave them: another one could only guess.
    const isConditional = known !== undefined && known.urlDigest === digestOf(hop.url);
    const headers = {
      'user-agent': userAgent,
      accept: 'image/*, video/*, audio/*',
      'accept-encoding': 'identity',
      'cdn-loop': CDN_TOKEN,
      ...(isConditional && known.etag !== undefined && { 'if-none-match': known.etag }),
      ...(isConditional && known.lastModified && { 'if-modified-since': known.lastModified }),
      ...(range && { range: `bytes=${range.first}-${range.last ?? ''}` }),
      ...(range && ifRange !== undefined && { 'if-range': ifRange }),
    };
    const { url, host } = hop;
    const answer = await askSite(connections, { url, host, headers, signal, headTimeoutMs });
    return { answer, hop, isConditional };
  }

  #noteFailure(error: unknown): void {
    const { meter } = this.#parts;
    const code = error instanceof MediaError ? error.code : undefined;
    if (code === 'UNKNOWN_MEDIA') meter.noteFetch('missing');
    else if (code === 'OVERLOADED') meter.noteFetch('overloaded');
    else if (error instanceof MediaError && error.cause instanceof SiteFailure) {
      meter.noteFetch(error.cause.reason);
    } else meter.noteFetch('stopped');
  }

  /** What ends in the middle was counted as fetched; a reader that leaves is not the site's fault. */
  #noteBrokenBody(error: Error, signal: AbortSignal): void {
    if (signal.aborted || error.name === 'AbortError') return;
    this.#parts.meter.noteFetch(error.name === 'BodyTimeoutError' ? 'time' : 'response');
  }
}

function digestOf(url: URL): string {
  return createHash('sha256').update(url.href).digest('base64url');
}
