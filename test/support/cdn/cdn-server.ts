import { createHmac, hash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { listenUntilEnd } from '../at-end.ts';

/** CDNs whose APIs this server imitates, according to their public documentation. */
export type CdnName = 'cloudflare' | 'fastly' | 'bunny' | 'cloudfront';

export const CDN_TOKEN = 'a-token-of-the-cdn-that-no-log-has';
export const CDN_ZONE = 'ZONE1234';
export const AWS_KEYS = {
  accessKeyId: 'AKIDEXAMPLEOFTHETESTS',
  secretAccessKey: 'a-secret-key-of-the-tests-that-signs',
} as const;

/** Error response to a call. */
type ApiError = 'limited' | 'limited with time' | 'failed' | 'refused' | 'denied';

/** Failure of a call: an error response, no response, or a reset connection. */
export type Fault = ApiError | 'hang' | 'reset';

interface Call extends Pick<IncomingMessage, 'method' | 'headers'> {
  readonly path: string | undefined;
  readonly body: string;
}

interface ApiResponse {
  readonly status: number;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Tags that the call purges. Omitted for a rejected call. */
  readonly tags?: readonly string[];
}

/** API of one CDN, with its rate limit. */
interface Api {
  respond(call: Call, nowMs: number): ApiResponse;
  readonly faults: Readonly<Record<ApiError, ApiResponse>>;
}

/** Starts the API of a CDN; its rate limit uses the clock `nowMs`. */
export async function startCdnApi(name: CdnName, nowMs = (): number => performance.now()) {
  const api = apis[name]();
  const purges: { readonly atMs: number; readonly tags: readonly string[] }[] = [];
  const statuses: number[] = [];
  const faults: Fault[] = [];
  let pending = 0;
  const respond = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await text(request);
    const fault = faults.shift();
    if (fault === 'hang' || fault === 'reset') {
      statuses.push(0);
      if (fault === 'reset') response.destroy();
      return;
    }
    const { method, url: path, headers } = request;
    const call = { method, path, headers, body };
    const apiResponse = fault === undefined ? api.respond(call, nowMs()) : api.faults[fault];
    statuses.push(apiResponse.status);
    if (apiResponse.tags !== undefined) purges.push({ atMs: nowMs(), tags: apiResponse.tags });
    response.writeHead(apiResponse.status, apiResponse.headers).end(apiResponse.body);
  };
  const server = createServer((request, response) => {
    pending += 1;
    response.once('close', () => {
      pending -= 1;
    });
    void respond(request, response);
  });
  const port = await listenUntilEnd(server);
  return {
    /** Base URL for `EDGE_API`. */
    url: `http://127.0.0.1:${port}${name === 'cloudflare' ? '/client/v4' : ''}`,
    purges,
    /** All statuses in order; 0 for no response. */
    statuses,
    /** Failures of the next calls, in order. */
    faults,
    countPending: () => pending,
    /** Number of purges of each tag. */
    counts: () => {
      const counts = new Map<string, number>();
      for (const tag of purges.flatMap(({ tags }) => tags))
        counts.set(tag, (counts.get(tag) ?? 0) + 1);
      return counts;
    },
  };
}

/** Creates a full token bucket that returns the seconds to wait; 0 admits the call. */
function createBucket(size: number, refillMs: number) {
  let tokens = size;
  let filledMs = 0;
  return (nowMs: number): number => {
    tokens = Math.min(size, tokens + (nowMs - filledMs) / refillMs);
    filledMs = nowMs;
    // Sums of fractions have rounding errors.
    if (tokens < 1 - 1e-6) return Math.ceil(((1 - tokens) * refillMs) / 1000);
    tokens -= 1;
    return 0;
  };
}

const json = (status: number, value: object, headers = {}): ApiResponse => ({
  status,
  body: JSON.stringify(value),
  headers: { 'content-type': 'application/json', ...headers },
});

const apis: Readonly<Record<CdnName, () => Api>> = {
  /** developers.cloudflare.com: "Purge cache", "Purge cache by cache-tags", the API's "Purge Cached Content". */
  cloudflare: () => {
    const admit = createBucket(25, 12_000);
    const refusal = (status: number, code: number, message: string, headers = {}): ApiResponse =>
      json(status, { success: false, errors: [{ code, message }], messages: [] }, headers);
    return {
      respond: ({ method, path, headers, body }, nowMs) => {
        const isPath = path === `/client/v4/zones/${CDN_ZONE}/purge_cache`;
        if (method !== 'POST' || !isPath) return refusal(404, 7003, 'No route');
        if (headers.authorization !== `Bearer ${CDN_TOKEN}`) {
          return refusal(403, 10000, 'Authentication error');
        }
        const seconds = admit(nowMs);
        if (seconds > 0) return refusal(429, 971, 'Rate limited', { 'retry-after': `${seconds}` });
        const { tags } = JSON.parse(body);
        if (!Array.isArray(tags) || tags.length === 0 || tags.length > 100) {
          return refusal(400, 1094, 'At most 100 tags');
        }
        const taken = { success: true, errors: [], messages: [], result: { id: CDN_ZONE } };
        return { ...json(200, taken), tags };
      },
      faults: {
        limited: refusal(429, 971, 'Rate limited'),
        'limited with time': refusal(429, 971, 'Rate limited', { 'retry-after': '7' }),
        failed: { status: 502, body: '<html>Bad gateway</html>' },
        refused: refusal(200, 1012, `The request with ${CDN_TOKEN} has failed`),
        denied: refusal(403, 10000, 'Authentication error'),
      },
    };
  },
  /** fastly.com/documentation: "Purging" (bulk purge by surrogate keys), "Rate limiting". */
  fastly: () => {
    const calls: { readonly atMs: number; readonly keys: number }[] = [];
    return {
      respond: ({ method, path, headers, body }, nowMs) => {
        if (method !== 'POST' || path !== `/service/${CDN_ZONE}/purge`) {
          return json(404, { msg: 'Record not found' });
        }
        if (headers['fastly-key'] !== CDN_TOKEN)
          return json(401, { msg: 'Provided credentials are missing or invalid' });
        const { surrogate_keys: tags } = JSON.parse(body);
        if (!Array.isArray(tags) || tags.length > 256) return json(400, { msg: 'Bad request' });
        calls.push({ atMs: nowMs, keys: tags.length });
        const lately = calls.filter(({ atMs }) => atMs > nowMs - 3_600_000);
        if (lately.reduce((sum, { keys }) => sum + keys, 0) > 100_000)
          return json(429, { msg: 'Rate limited' });
        const purged = tags.map((tag, at) => [tag, `108-${at}`]);
        return { ...json(200, Object.fromEntries(purged)), tags };
      },
      faults: {
        limited: json(429, { msg: 'You have exceeded your hourly rate limit.' }),
        'limited with time': json(429, { msg: 'Rate limited' }, { 'retry-after': '7' }),
        failed: json(503, { msg: 'Service unavailable' }),
        refused: json(400, { msg: 'Bad request', detail: 'no' }),
        denied: json(401, { msg: 'Provided credentials are missing or invalid' }),
      },
    };
  },
  /** docs.bunny.net: "Purge Cache" with its rate limits, and the API reference of that name. */
  bunny: () => {
    const admit = createBucket(120, 200);
    return {
      respond: ({ method, path, headers, body }, nowMs) => {
        if (method !== 'POST' || path !== `/pullzone/${CDN_ZONE}/purgeCache`)
          return { status: 404 };
        if (headers.accesskey !== CDN_TOKEN) return { status: 401 };
        const seconds = admit(nowMs);
        if (seconds > 0) return { status: 429, headers: { 'retry-after': `${seconds}` } };
        const { CacheTag, ...rest } = JSON.parse(body);
        if (typeof CacheTag !== 'string' || Object.keys(rest).length > 0) return { status: 400 };
        return { status: 204, tags: [CacheTag] };
      },
      faults: {
        limited: { status: 429 },
        'limited with time': { status: 429, headers: { 'retry-after': '7' } },
        failed: { status: 500 },
        refused: json(400, { ErrorKey: 'purge', Message: 'The zone is suspended.' }),
        denied: { status: 401 },
      },
    };
  },
  /** CloudFront API Reference, "CreateInvalidation"; Developer Guide, "Concurrent invalidation request maximum". */
  cloudfront: () => {
    /** Invalidations by caller reference. */
    const batches = new Map<string, { readonly items: string; count: number; endsAtMs: number }>();
    const error = (status: number, code: string, message = 'No.'): ApiResponse => ({
      status,
      body: `<?xml version="1.0"?><ErrorResponse xmlns="http://cloudfront.amazonaws.com/doc/2020-05-31/"><Error><Type>Sender</Type><Code>${code}</Code><Message>${message}</Message></Error><RequestId>1</RequestId></ErrorResponse>`,
    });
    return {
      respond: (call, nowMs) => {
        const { method, path, body } = call;
        if (method !== 'POST' || path !== `/2020-05-31/distribution/${CDN_ZONE}/invalidation`) {
          return error(404, 'NoSuchDistribution');
        }
        if (!isSigned(call)) return error(403, 'SignatureDoesNotMatch', AWS_KEYS.accessKeyId);
        const [, reference = ''] = /<CallerReference>([^<]+)<\/CallerReference>/.exec(body) ?? [];
        const items = [...body.matchAll(/<Path>#([^<]+)<\/Path>/g)].map(([, item = '']) => item);
        const [, quantity] = /<Quantity>(\d+)<\/Quantity>/.exec(body) ?? [];
        if (reference === '') return error(400, 'MissingBody');
        if (items.length === 0 || Number(quantity) !== items.length) {
          return error(400, 'InconsistentQuantities');
        }
        const known = batches.get(reference);
        if (known !== undefined) {
          return known.items === items.join()
            ? { status: 201 }
            : error(400, 'InvalidationBatchAlreadyExists');
        }
        const inProgress = [...batches.values()].filter(({ endsAtMs }) => endsAtMs > nowMs);
        const count = inProgress.reduce((sum, batch) => sum + batch.count, items.length);
        if (count > 3_000) return error(400, 'TooManyInvalidationsInProgress');
        const endsAtMs = nowMs + 25_000;
        batches.set(reference, { items: items.join(), count: items.length, endsAtMs });
        return { status: 201, tags: items };
      },
      faults: {
        limited: error(400, 'TooManyInvalidationsInProgress'),
        'limited with time': { ...error(503, 'Throttling'), headers: { 'retry-after': '7' } },
        failed: error(500, 'InternalError'),
        refused: error(400, 'InvalidArgument'),
        denied: error(403, 'AccessDenied', AWS_KEYS.accessKeyId),
      },
    };
  },
};

/** Whether a call to CloudFront has a valid AWS Signature Version 4 of our keys. */
function isSigned({ method, path, headers, body }: Call): boolean {
  const form =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/us-east-1\/cloudfront\/aws4_request, SignedHeaders=([^,]+), Signature=(\w{64})$/;
  const [, keyId, day = '', names = '', signature] = form.exec(headers.authorization ?? '') ?? [];
  const time = String(headers['x-amz-date']);
  if (keyId !== AWS_KEYS.accessKeyId || !time.startsWith(day)) return false;
  const signed = names.split(';').map((name) => `${name}:${String(headers[name]).trim()}\n`);
  const canonical = [method, path, '', signed.join(''), names, hash('sha256', body)].join('\n');
  const scope = [day, 'us-east-1', 'cloudfront', 'aws4_request'];
  const key = scope.reduce(hmac, Buffer.from(`AWS4${AWS_KEYS.secretAccessKey}`));
  const message = ['AWS4-HMAC-SHA256', time, scope.join('/'), hash('sha256', canonical)].join('\n');
  return hmac(key, message).toString('hex') === signature;
}

const hmac = (key: Buffer, text: string) => createHmac('sha256', key).update(text).digest();
