export interface Timing {
  readonly name: string;
  readonly durationMs: number;
}

export interface Fault {
  readonly path: string;
  readonly message: string;
}

export type ResponseBody =
  | {
      readonly kind: 'picture';
      readonly blob: Blob;
      /** In pixels; 0 if the browser cannot decode the picture. */
      readonly width: number;
      readonly height: number;
    }
  /** Not a picture, or too large to load. */
  | { readonly kind: 'file' }
  | {
      readonly kind: 'error';
      readonly code: string;
      readonly message: string;
      readonly errors: readonly Fault[];
    };

export interface Exchange {
  readonly target: string;
  readonly status: number;
  readonly mimeType: string;
  readonly sizeBytes: number;
  readonly cacheStatus: string | undefined;
  readonly timings: readonly Timing[];
  /** Time from the request to the last byte, measured in the browser. */
  readonly totalMs: number;
  readonly body: ResponseBody;
}

type Received = Pick<Exchange, 'body' | 'sizeBytes'>;

const MAX_PICTURE_BYTES = 64 * 1024 * 1024;

/** Types that an `img` may display: the formats of the contract. */
const PICTURE_TYPES = /^image\/(?:a?png|jpeg|webp|gif|avif)$/;

/** Requests a target, bypassing the browser's cache. @throws TypeError without a response */
export async function send(target: string): Promise<Exchange> {
  const startMs = performance.now();
  const response = await fetch(target, { cache: 'no-store', priority: 'high' });
  const { status, headers } = response;
  const mimeType = (headers.get('content-type') ?? '').split(';')[0]?.trim() ?? '';
  const declaredBytes = Number(headers.get('content-length') ?? 0);
  const { body, sizeBytes } = await readBody(response, mimeType, declaredBytes);
  return {
    target,
    status,
    mimeType,
    sizeBytes,
    cacheStatus: headers.get('cache-status') ?? undefined,
    timings: readTimings(headers.get('server-timing') ?? ''),
    totalMs: performance.now() - startMs,
    body,
  };
}

async function readBody(
  response: Response,
  mimeType: string,
  declaredBytes: number,
): Promise<Received> {
  if (!response.ok) return readError(response);
  if (!PICTURE_TYPES.test(mimeType) || declaredBytes > MAX_PICTURE_BYTES) {
    await response.body?.cancel();
    return { body: { kind: 'file' }, sizeBytes: declaredBytes };
  }
  const blob = await response.blob();
  const { width, height } = await measure(blob);
  return { body: { kind: 'picture', blob, width, height }, sizeBytes: blob.size };
}

async function measure(blob: Blob): Promise<{ readonly width: number; readonly height: number }> {
  try {
    const bitmap = await createImageBitmap(blob);
    const { width, height } = bitmap;
    bitmap.close();
    return { width, height };
  } catch {
    return { width: 0, height: 0 };
  }
}

/** Parses an error response, which may come from a proxy and not be JSON. */
async function readError(response: Response): Promise<Received> {
  const text = await response.text();
  const error = { code: `HTTP ${response.status}`, message: response.statusText, errors: [] };
  const sizeBytes = new TextEncoder().encode(text).length;
  try {
    return { body: { kind: 'error', ...error, ...JSON.parse(text) }, sizeBytes };
  } catch {
    return { body: { kind: 'error', ...error }, sizeBytes };
  }
}

function readTimings(header: string): readonly Timing[] {
  return [...header.matchAll(/([\w-]+);dur=([\d.]+)/g)].map(([, name = '', duration]) => ({
    name,
    durationMs: Number(duration),
  }));
}
