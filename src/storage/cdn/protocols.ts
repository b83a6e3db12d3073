import type { Config } from '../../config/config.ts';
import type { CdnName } from '../../contract/cdn-tags.ts';

/** Settings of a CDN, with the base URL of its API. CloudFront has no token: it uses the credentials of the AWS SDK. */
type CdnSettings = NonNullable<Config['cdn']> & { readonly base: string };

interface CdnRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface CdnResponse {
  readonly status: number;
  readonly body: string;
}

export interface CdnProtocol {
  readonly base: string;
  request(
    settings: CdnSettings,
    tags: readonly string[],
    reference: string,
  ): CdnRequest | Promise<CdnRequest>;
  /** Returns the reason if the API did not accept the tags. */
  findFailure(response: CdnResponse): string | undefined;
  /** Whether a failure means too many calls, in addition to the status 429. */
  isLimited?(response: CdnResponse): boolean;
}

const JSON_TYPE = { 'content-type': 'application/json' } as const;

export const protocols: Readonly<Record<Exclude<CdnName, 'cloudfront'>, CdnProtocol>> = {
  /** `POST /zones/{zone_id}/purge_cache` (developers.cloudflare.com/api, "Purge Cached Content"). */
  cloudflare: {
    base: 'https://api.cloudflare.com/client/v4',
    request: ({ zone, token }, tags) => ({
      path: `/zones/${zone}/purge_cache`,
      headers: { ...JSON_TYPE, authorization: `Bearer ${token}` },
      body: JSON.stringify({ tags }),
    }),
    // A 200 may contain `success: false`.
    findFailure: ({ status, body }) => {
      const { success, errors } = parseObject(body) as CloudflareResult;
      if (status === 200 && success === true) return undefined;
      const error = errors?.[0];
      return [`HTTP ${status}`, error?.code, error?.message].filter(Boolean).join(' ');
    },
  },
  /** `POST /service/{service_id}/purge` (fastly.com/documentation, "Purge multiple surrogate keys"). */
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

/** Returns an empty object for other text, such as a proxy's page. */
function parseObject(text: string): object {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : {};
  } catch {
    return {};
  }
}
