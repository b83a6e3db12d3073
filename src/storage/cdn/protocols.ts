import type { CdnName } from '../../contract/cdn-tags.ts';

/** The CDN, and how its API is reached. */
export interface CdnOptions {
  readonly name: CdnName;
  /** Zone, service, pull zone or distribution. */
  readonly zone: string;
  /** `undefined` for CloudFront, whose credentials come from the chain of the AWS SDK. */
  readonly token: string | undefined;
  /** Base URL of the API, without a slash at the end; `undefined`: the CDN's own. */
  readonly api: string | undefined;
}

interface CdnRequest {
  /** Path below the base URL. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A response of an API. */
export interface CdnResponse {
  readonly status: number;
  readonly body: string;
}

/** An API, as its document describes it. */
export interface CdnProtocol {
  readonly base: string;
  request(
    options: CdnOptions & { readonly base: string },
    tags: readonly string[],
    reference: string,
  ): CdnRequest | Promise<CdnRequest>;
  /** Returns why the API has not accepted the tags; `undefined` if it has. */
  findFailure(response: CdnResponse): string | undefined;
  /** Whether a failure means too many calls, besides the status 429. */
  isLimited?(response: CdnResponse): boolean;
}

const JSON_TYPE = { 'content-type': 'application/json' } as const;

/** The APIs except CloudFront's, each from its public document. */
export const protocols: Readonly<Record<Exclude<CdnName, 'cloudfront'>, CdnProtocol>> = {
  /** `POST /zones/{zone_id}/purge_cache` (developers.cloudflare.com/api, "Purge Cached Content"). */
  cloudflare: {
    base: 'https://api.cloudflare.com/client/v4',
    request: ({ zone, token }, tags) => ({
      path: `/zones/${zone}/purge_cache`,
      headers: { ...JSON_TYPE, authorization: `Bearer ${token}` },
      body: JSON.stringify({ tags }),
    }),
    // A 200 may say `success: false`.
    findFailure: ({ status, body }) => {
      const { success, errors } = parseObject(body) as CloudflareResult;
      if (status === 200 && success === true) return undefined;
      const error = errors?.[0];
      return [`HTTP ${status}`, error?.code, error?.message].filter(Boolean).join(' ');
    },
  },
  /** `POST /service/{service_id}/purge` (fastly.com/documentation/reference/api/purging, "Purge multiple surrogate keys"). */
  fastly: {
    base: 'https://api.fastly.com',
    request: ({ zone, token }, tags) => ({
      path: `/service/${zone}/purge`,
      headers: { ...JSON_TYPE, accept: 'application/json', 'fastly-key': token ?? '' },
      body: JSON.stringify({ surrogate_keys: tags }),
    }),
    findFailure: ({ status, body }) => {
      const { success, msg, detail } = parseObject(body) as Record<string, unknown>;
      if (status === 200 && success !== false) return undefined;
      return [`HTTP ${status}`, msg, detail].filter(Boolean).join(' ');
    },
  },
  /** `POST /pullzone/{id}/purgeCache` (docs.bunny.net/api-reference/core/pull-zone/purge-cache). */
  bunny: {
    base: 'https://api.bunny.net',
    request: ({ zone, token }, [tag]) => ({
      path: `/pullzone/${zone}/purgeCache`,
      headers: { ...JSON_TYPE, accesskey: token ?? '' },
      body: JSON.stringify({ CacheTag: tag }),
    }),
    findFailure: ({ status, body }) => {
      const { success, Message } = parseObject(body) as Record<string, unknown>;
      if ((status === 200 || status === 204) && success !== false) return undefined;
      return [`HTTP ${status}`, Message].filter(Boolean).join(' ');
    },
  },
};

interface CloudflareResult {
  readonly success?: unknown;
  readonly errors?: readonly { readonly code?: unknown; readonly message?: unknown }[] | null;
}

/** Returns an object of JSON; an empty one for other text, such as a proxy's page. */
function parseObject(text: string): object {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : {};
  } catch {
    return {};
  }
}
