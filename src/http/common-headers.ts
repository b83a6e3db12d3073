/** Methods that are answered with more than a refusal. */
export const ALLOWED_METHODS = 'GET, HEAD, OPTIONS';

/** Headers of every answer, errors included (spec §4). */
export const COMMON_HEADERS = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; sandbox",
  'cross-origin-resource-policy': 'cross-origin',
  'access-control-allow-origin': '*',
  'access-control-expose-headers':
    'Accept-Ranges, Cache-Status, Content-Disposition, Content-Length, Content-Range, ETag, Retry-After, Server-Timing, X-Request-Id',
  'timing-allow-origin': '*',
} as const;
