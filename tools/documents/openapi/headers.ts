import { metadataOutcomes } from '../../../src/contract/metadata.ts';
import { ALLOWED_METHODS, COMMON_HEADERS } from '../../../src/http/head.ts';
import { EXPOSED_WITH_METADATA, RELAY_METHODS } from '../../../src/http/relay/handler.ts';
import { REQUEST_ID } from '../../../src/http/request-state.ts';
import { byName, type Header, type Reference } from './model.ts';

const text = (description: string, pattern?: string): Header => ({
  description,
  required: true,
  schema: { type: 'string', ...(pattern !== undefined && { pattern }) },
});

const count = (description: string): Header => ({
  description,
  required: true,
  schema: { type: 'integer', minimum: 0 },
});

const tags = (edge: string, separator: string): Header => ({
  ...text(
    `With ${edge} in front: a tag of the original, and one per directory of its key.`,
    `^[0-9a-f]{16}(${separator}[0-9a-f]{16})*$`,
  ),
  required: false,
});

const DATE = '^[A-Z][a-z]{2}, \\d{2} [A-Z][a-z]{2} \\d{4} \\d{2}:\\d{2}:\\d{2} GMT$';

/** Values of `COMMON_HEADERS`, by the usual spelling of the header. */
const usualSpelling: Readonly<Record<keyof typeof COMMON_HEADERS, string>> = {
  'x-content-type-options': 'X-Content-Type-Options',
  'content-security-policy': 'Content-Security-Policy',
  'cross-origin-resource-policy': 'Cross-Origin-Resource-Policy',
  'access-control-allow-origin': 'Access-Control-Allow-Origin',
  'access-control-expose-headers': 'Access-Control-Expose-Headers',
  'timing-allow-origin': 'Timing-Allow-Origin',
};

const commonHeaders: Readonly<Record<string, Header>> = Object.fromEntries(
  Object.entries(usualSpelling).map(([name, spelling]) => {
    const value = Object.entries(COMMON_HEADERS).find(([known]) => known === name)?.[1];
    return [
      spelling,
      {
        description: 'In every response.',
        required: true,
        schema: { type: 'string', const: value },
      },
    ];
  }),
);

const rateHeaders = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'];
const exposedWithRates = [COMMON_HEADERS['access-control-expose-headers'], ...rateHeaders];

const methods = { enum: [ALLOWED_METHODS, RELAY_METHODS] };

const etag = text(
  'Strong: depends on the original, the canonical request and the pipeline release.',
  '^"[!#-~]+"$',
);

const requestId = text('Id of the request in the log.', REQUEST_ID.source);

/** All headers of responses, except headers of the connection and `Content-Type`, which follows from `content`. */
export const headerComponents = {
  ...commonHeaders,
  /** For statuses with rate headers. */
  'Access-Control-Expose-Headers-With-Rates': {
    description: 'As in every response, and the rate headers.',
    required: true,
    schema: { type: 'string', const: exposedWithRates.join(', ') },
  },
  /** For uploads: the usual headers, and `X-Metadata` if the response has it. */
  'Access-Control-Expose-Headers-Of-Uploads': {
    description: 'Those of every response, and `X-Metadata` if the response has it.',
    required: true,
    schema: {
      type: 'string',
      enum: [COMMON_HEADERS['access-control-expose-headers'], EXPOSED_WITH_METADATA],
    },
  },
  'X-Metadata': {
    description:
      'Outcome of the metadata removal: `removed`, `none` if there was no metadata, or `not-supported` if the upload was stored as sent. Absent if no removal was required.',
    required: false,
    schema: { type: 'string', enum: metadataOutcomes },
  },
  'X-Request-Id': requestId,
  /** For statuses of messages that are rejected before they become requests. */
  'X-Request-Id-If-Any': { ...requestId, required: false },
  ETag: etag,
  /** Media of a site without a strong validator have neither entity tag nor ranges. */
  'ETag-If-Any': { ...etag, required: false },
  'Last-Modified': {
    ...text('Date of the original, if its storage has one.', DATE),
    required: false,
  },
  'Cache-Control': text(
    'Time for which a shared cache may keep the response; configurable.',
    '^(public, max-age=\\d+(, immutable)?|no-store)$',
  ),
  'CDN-Cache-Control': {
    ...text('The same for CDNs (RFC 9213), if `CDN_CACHE_CONTROL` is true.'),
    required: false,
  },
  /** A response has only the header of the CDN that `EDGE` names. */
  'Cache-Tag': tags('Cloudflare and CloudFront', ','),
  'Surrogate-Key': tags('Fastly', ' '),
  'CDN-Tag': tags('Bunny', ','),
  'X-Robots-Tag': {
    ...text('Directives for search engines; configurable.'),
    required: false,
  },
  'Content-Length': count('Bytes of the body; for HEAD, of the body of a GET.'),
  'Accept-Ranges': { ...text('Ranges of bytes are supported.'), schema: { const: 'bytes' } },
  'Accept-Ranges-Or-None': {
    ...text('Whether ranges of bytes are supported.'),
    schema: { enum: ['bytes', 'none'] },
  },
  'Content-Range': text(
    'Position of the range in the complete body. A 416 has only the length of the complete body.',
    '^bytes (\\d+-\\d+|\\*)/\\d+$',
  ),
  'Content-Disposition': text(
    'Inline if that is safe, otherwise a download with the name of the file (RFC 6266).',
    '^(inline|attachment)(; .+)?$',
  ),
  'Cache-Status': {
    ...text(
      'RFC 9211: a hit, or why the storage was contacted, and the result. Absent if the request was rejected before the cache lookup.',
      '^darkroom(; [a-z-]+(=[A-Za-z0-9-]+)?)+$',
    ),
    required: false,
  },
  'Server-Timing': {
    ...text(
      'Milliseconds per stage of the request.',
      '^(store|origin|queue|render);dur=[0-9.]+(, (store|origin|queue|render);dur=[0-9.]+)*$',
    ),
    required: false,
  },
  Link: {
    ...text(
      'Party that requires the block (RFC 7725), if `BLOCKED_BY` is set.',
      '; rel="blocked-by"$',
    ),
    required: false,
  },
  'Retry-After': count('Seconds after which to retry.'),
  'Retry-After-If-Any': {
    ...count('Seconds after which to retry, if known.'),
    required: false,
  },
  'X-RateLimit-Limit': count(
    'Units of rendering that a client has per window (RATE_LIMIT_REQUESTS); a unit is 50 ms.',
  ),
  'X-RateLimit-Remaining': count('Units that are left.'),
  'X-RateLimit-Reset': count('Unix time at which all units are available again.'),
  Allow: { ...text('Allowed methods of media or uploads.'), schema: methods },
  'Access-Control-Allow-Methods': { ...text('Allowed methods, for a preflight.'), schema: methods },
  'Access-Control-Allow-Headers': text('Allowed request headers: any.'),
  'Access-Control-Max-Age': count('Seconds for which a browser may cache the preflight.'),
  'WWW-Authenticate': { ...text('Authentication scheme.'), schema: { const: 'Bearer' } },
} as const satisfies Readonly<Record<string, Header>>;

/** Headers by which the CDN in front of the service finds the responses of an original. */
export const tagHeaders = ['Cache-Tag', 'Surrogate-Key', 'CDN-Tag'] as const;

/** Returns references to these headers, and to those of every response to a request. */
export function headersOf(
  ...names: (keyof typeof headerComponents)[]
): Readonly<Record<string, Reference>> {
  const isForCaches = names.includes('Cache-Control');
  const all = [...names, ...(isForCaches ? ['CDN-Cache-Control'] : [])];
  return byName([...Object.values(usualSpelling), 'X-Request-Id', ...all], (name) => ({
    $ref: `#/components/headers/${name}`,
  }));
}

/** Returns the same for statuses of messages that are rejected before they become requests. */
export function headersWithIdIfAny(
  ...names: (keyof typeof headerComponents)[]
): Readonly<Record<string, Reference>> {
  const ifAny = { $ref: '#/components/headers/X-Request-Id-If-Any' };
  return { ...headersOf(...names), 'X-Request-Id': ifAny };
}

/** Returns references to these headers only: browsers do not use the admin listener. */
export function onlyHeaders(
  ...names: (keyof typeof headerComponents)[]
): Readonly<Record<string, Reference>> {
  return byName(names, (name) => ({ $ref: `#/components/headers/${name}` }));
}
