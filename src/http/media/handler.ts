import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { Config } from '../../config/config.ts';
import { MediaError } from '../../contract/errors.ts';
import type { MediaRequest } from '../../contract/media-request.ts';
import { resourceRows } from '../../contract/resources.ts';
import type { DefaultAvatar } from '../../default-avatars/default-avatars.ts';
import type { BlockGuard } from '../../pipeline/blocks/block-guard.ts';
import type { RequestedBytes } from '../../pipeline/originals/open-beginning.ts';
import type { PassthroughMedia } from '../../pipeline/originals/passthrough.ts';
import type { MediaResult } from '../../pipeline/ports.ts';
import type { CacheOutcome } from '../../pipeline/request-trace.ts';
import type { MediaService } from '../../pipeline/serve-media.ts';
import { createProxyWatch, rateClientOf } from '../client-address.ts';
import { isConditional, isNotModified, isPreconditionFailed } from '../conditional.ts';
import { formatMediaDisposition } from '../content-disposition.ts';
import type { Exchange } from '../exchange.ts';
import {
  formatNotModifiedFields,
  type Head,
  type PreparedBody,
  prepareBody,
  prepareHead,
  publicMaxAge,
  type SelectedResponse,
  selectResponse,
} from '../head.ts';
import { parseBeginning } from '../range.ts';
import type { Observers } from '../request-state.ts';
import { createMediaTargets, type MediaTarget, type ParsedTarget } from './targets.ts';

const HIT: CacheOutcome = { kind: 'hit' };

export type MediaHandler = ReturnType<typeof createMediaHandler>;

/**
 * Creates the handler of GET and HEAD for all paths of the contract.
 *
 * @param blocks omit to block nothing
 * @param tools.wallClock milliseconds since 1970
 */
export function createMediaHandler(
  config: Pick<Config, 'parseOptions' | 'attachments' | 'external' | 'http' | 'rates'>,
  service: MediaService,
  defaultAvatars: readonly DefaultAvatar[],
  blocks: BlockGuard | undefined,
  tools: Pick<Observers, 'clock' | 'log' | 'meter'> & { readonly wallClock: () => number },
) {
  const { maxAgeSeconds, robotsTag } = config.http;
  const externalMinAgeSeconds = config.external?.minAgeSeconds ?? 0;
  /** `Cache-Control` of media from the storage, whose content at a URL never changes. */
  const immutable = `${publicMaxAge(maxAgeSeconds.media)}, immutable`;
  const avatarCacheControl = publicMaxAge(maxAgeSeconds.defaultAvatar);
  const targets = createMediaTargets(config, blocks, tools.meter, tools.wallClock);
  const watchProxy = config.rates && createProxyWatch(tools.clock, tools.log);
  const avatars = defaultAvatars.map(({ body, etag }) =>
    prepareBody(body, {
      contentType: 'image/png',
      contentDisposition: undefined,
      validators: { etag, lastModified: undefined },
      robotsTag: '',
    }),
  );
  /** Prepared bodies of results in memory; not for downloads and redirects, whose heads differ. */
  const preparedResults = new WeakMap<MediaResult, PreparedBody>();

  const respond = (exchange: Exchange, parsed: ParsedTarget): Promise<void> | undefined => {
    const { state } = exchange;
    if ('index' in parsed) {
      sendAvatar(exchange, avatars[Number(parsed.index)]);
      return undefined;
    }
    state.resource = parsed.media.resource;
    state.media = parsed.media;
    state.asset = parsed.cacheKey;
    // A refused URL gets these tags too, since it must look like a missing attachment. After a redirect, the keys before it
    // stay, so that a purge of any of them removes the response.
    state.originKeys = [...state.originKeys, parsed.media.originKey];
    const target = targets.admit(exchange, parsed);
    const hit = target.media.isPassthrough ? undefined : service.findHit(target, state.trace);
    if (hit === undefined) return respondAsync(exchange, target);
    sendResult(exchange, hit, target, HIT);
    return undefined;
  };

  const respondAsync = async (exchange: Exchange, target: MediaTarget): Promise<void> => {
    const { request, state, signal } = exchange;
    if (!target.media.isPassthrough) watchProxy?.(request, exchange.addresses);
    const response = await service.serve(target, {
      signal,
      trace: state.trace,
      isConditional: isConditional(request.headers),
      matchesCondition: (validators) =>
        !isPreconditionFailed(request.headers, validators) &&
        isNotModified(request.headers, validators, false),
      rateLimitKey: () => rateClientOf(exchange.addresses),
      onWait: (outcome) => exchange.setOutcome(outcome),
      original: {
        requestedBytes: (ignoresRange) => requestedBytes(conditionsOf(request, ignoresRange)),
        select: (original, media, ignoresRange) => {
          const conditions = conditionsOf(request, ignoresRange);
          const head = prepareOriginal(exchange, original, media, target);
          const selected = selectResponse(conditions, head);
          return { ...selected, hasBody: hasBody(request, selected) };
        },
      },
    });
    if (response.kind === 'redirect') {
      if (target.media.url === undefined || target.isRedirected) throw response.error;
      return respond(exchange, targets.parseRedirect(exchange, response.error));
    }
    const { outcome } = response;
    if (response.kind === 'rendition') {
      sendResult(exchange, response.result, target, outcome);
    } else if (response.kind === 'not-modified') {
      const fields = formatNotModifiedFields(response.validators, robotsTag, exchange.tagField);
      const notModified = { status: 304, fields, first: 0, last: undefined } as const;
      exchange.sendSelected(notModified, cacheControlOf(target), outcome);
    } else {
      const cacheControl = cacheControlOf(target, response.original.maxAgeSeconds);
      exchange.sendSelected(response.selected, cacheControl, outcome, response.body);
    }
    return undefined;
  };

  const sendResult = (
    exchange: Exchange,
    result: MediaResult,
    target: MediaTarget,
    outcome: CacheOutcome,
  ): void => {
    const { media, isDownload = false, isRedirected = false } = target;
    const isShared = !isDownload && !isRedirected;
    let prepared = isShared ? preparedResults.get(result) : undefined;
    if (prepared === undefined) {
      const { body, mimeType, etag, lastModified } = result;
      prepared = prepareBody(Buffer.from(body.buffer, body.byteOffset, body.byteLength), {
        contentType: mimeType,
        contentDisposition: formatMediaDisposition(media, mimeType, isDownload),
        validators: { etag, lastModified },
        robotsTag,
        tagField: exchange.tagField,
      });
      if (isShared) preparedResults.set(result, prepared);
    }
    targets.remember(exchange, target);
    const { originKey, url } = media;
    const sent = { originKey, url, etag: result.originalEtag };
    const watch = blocks && ((body: Readable) => blocks.watch(sent, body));
    exchange.sendBytes(prepared, cacheControlOf(target), outcome, watch);
  };

  const prepareOriginal = (
    exchange: Exchange,
    original: PassthroughMedia,
    media: MediaRequest,
    { isDownload }: MediaTarget,
  ): Head => {
    const contentType = resourceRows[media.resource].contentType ?? original.contentType;
    return prepareHead({
      ...original,
      contentType,
      contentDisposition: formatMediaDisposition(media, contentType, isDownload),
      robotsTag,
      tagField: exchange.tagField,
    });
  };

  /** Returns the `Cache-Control` of a response sent now. @param siteSeconds remaining freshness of external media */
  const cacheControlOf = (target: MediaTarget, siteSeconds?: number): string => {
    const { media, isRedirected = false } = target;
    if (media.url !== undefined) {
      // The minimum applies if the site cannot confirm the media, or declares no freshness.
      const leftSeconds = siteSeconds ?? service.maxAgeOf(media) ?? 0;
      return publicMaxAge(Math.max(leftSeconds, externalMinAgeSeconds));
    }
    const leftSeconds = targets.maxAgeOf(target);
    if (leftSeconds === undefined && !isRedirected) return immutable;
    // A redirect gets the minimum of external media, since its target may change.
    const redirectSeconds = isRedirected ? externalMinAgeSeconds : maxAgeSeconds.media;
    return publicMaxAge(
      Math.min(maxAgeSeconds.media, redirectSeconds, leftSeconds ?? maxAgeSeconds.media),
    );
  };

  const sendAvatar = (exchange: Exchange, avatar: PreparedBody | undefined): void => {
    exchange.state.resource = 'default avatar';
    exchange.state.media = undefined;
    exchange.state.asset = undefined;
    if (avatar === undefined) throw new MediaError('UNKNOWN_MEDIA');
    exchange.sendBytes(avatar, avatarCacheControl, HIT);
  };

  return {
    knowsPath: targets.knowsPath,
    /**
     * Responds; synchronously for a hit.
     *
     * @throws MediaError of any stage; `exchange.signal.reason` after the client disconnected
     */
    handle: (exchange: Exchange) => respond(exchange, targets.parse(exchange)),
  };
}

type Conditions = Pick<IncomingMessage, 'method' | 'headers'>;

function conditionsOf({ method, headers }: IncomingMessage, ignoresRange: boolean): Conditions {
  const { range, ...others } = headers;
  return { method, headers: ignoresRange ? others : headers };
}

function requestedBytes({ method, headers }: Conditions): RequestedBytes {
  return {
    isComplete: method === 'GET' && headers.range === undefined && !isConditional(headers),
    isRange: method === 'GET' && headers.range !== undefined,
    beginning: parseBeginning(headers.range),
  };
}

function hasBody({ method }: IncomingMessage, { status }: SelectedResponse): boolean {
  return method !== 'HEAD' && (status === 200 || status === 206);
}
