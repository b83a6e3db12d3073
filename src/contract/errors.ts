/** Registry of all errors that a client can see; the table of contract §5 is generated from it. */

interface ErrorRow {
  readonly status: number;
  /** Text for humans; may change; programs must not depend on the text. */
  readonly message: string;
  /** Party at fault; decides what is logged, and at which level. */
  readonly fault: 'client' | 'original' | 'origin' | 'load' | 'service';
}

export const errorRegistry = {
  INVALID_FORM_BODY: { status: 400, message: 'The request is not valid.', fault: 'client' },
  UNAUTHORIZED: {
    status: 401,
    message: 'The signature in the URL is missing or wrong.',
    fault: 'client',
  },
  ACCESS_DENIED: {
    status: 403,
    message: 'The upload is not permitted.',
    fault: 'client',
  },
  NOT_FOUND: { status: 404, message: 'There is no such path.', fault: 'client' },
  UNKNOWN_MEDIA: { status: 404, message: 'There is no such media.', fault: 'client' },
  METHOD_NOT_ALLOWED: {
    status: 405,
    message: 'The method is not allowed; use GET, HEAD or OPTIONS.',
    fault: 'client',
  },
  REQUEST_TIMEOUT: { status: 408, message: 'The upload is too slow.', fault: 'client' },
  MEDIA_EXISTS: { status: 409, message: 'There is an object at the key already.', fault: 'client' },
  LENGTH_REQUIRED: { status: 411, message: 'The upload must declare its length.', fault: 'client' },
  PRECONDITION_FAILED: {
    status: 412,
    message: 'The media does not match If-Match or If-Unmodified-Since.',
    fault: 'client',
  },
  PAYLOAD_TOO_LARGE: {
    status: 413,
    message: 'The upload is larger than it may be.',
    fault: 'client',
  },
  UNSUPPORTED_MEDIA_TYPE: {
    status: 415,
    message: 'The original is not an image that can be transformed.',
    fault: 'original',
  },
  RANGE_NOT_SATISFIABLE: {
    status: 416,
    message: 'The range lies outside the media.',
    fault: 'client',
  },
  MEDIA_TOO_LARGE: {
    status: 422,
    message: 'The original has more bytes, pixels or frames than are accepted.',
    fault: 'original',
  },
  UNPROCESSABLE_MEDIA: {
    status: 422,
    message: 'The original is truncated or corrupt.',
    fault: 'original',
  },
  UNAVAILABLE: { status: 451, message: 'The media is not available here.', fault: 'client' },
  RATE_LIMITED: { status: 429, message: 'Too many requests.', fault: 'client' },
  INTERNAL_ERROR: { status: 500, message: 'The service has failed.', fault: 'service' },
  ORIGIN_ERROR: { status: 502, message: 'The origin has failed.', fault: 'origin' },
  OVERLOADED: {
    status: 503,
    message: 'The service is at its capacity; try again later.',
    fault: 'load',
  },
  ORIGIN_TIMEOUT: {
    status: 504,
    message: 'The origin has not responded in time.',
    fault: 'origin',
  },
  TRANSFORM_TIMEOUT: {
    status: 504,
    message: 'The transform has not ended in time.',
    fault: 'original',
  },
} as const satisfies Record<string, ErrorRow>;

/** Stable, machine-readable code of an error response. */
export type ErrorCode = keyof typeof errorRegistry;

/** One fault of a request; `path` is the name of the path part or query parameter at fault. */
export interface RequestFault {
  readonly path: string;
  readonly message: string;
}

/** Resources whose shortage can reject a request. */
export const bottlenecks = [
  'light lane',
  'heavy lane',
  'origin',
  'memory',
  'workers',
  'requests',
  'uploads',
] as const;
export type Bottleneck = (typeof bottlenecks)[number];

/** Rate limit of a client and what is left of the limit (contract §11). */
export interface Share {
  /** Rendering requests per window. */
  readonly requests: number;
  readonly remaining: number;
  /** Time at which the whole limit is available again, in milliseconds since 1970. */
  readonly resetAtMs: number;
}

interface MediaErrorOptions {
  /** Text for the client; omit for that of the registry. */
  readonly message?: string | undefined;
  /** Underlying failure; for the log, never for the client. */
  readonly cause?: unknown;
  /** All faults of the request, for `INVALID_FORM_BODY` alone. */
  readonly faults?: readonly RequestFault[];
  /** Seconds after which a retry is worth it, for `OVERLOADED` and, with fractions, `RATE_LIMITED`. */
  readonly retryAfterSeconds?: number;
  /** For `RATE_LIMITED` alone. */
  readonly share?: Share;
  /** Headers of the response, besides those of all errors. */
  readonly headers?: Readonly<Record<string, string>>;
  /** For `OVERLOADED`: the resource that ran short, for the log and the counters. */
  readonly bottleneck?: Bottleneck;
}

/** The only error class of the service: a row of the registry, and details for the log. */
export class MediaError extends Error {
  override readonly name = 'MediaError';
  readonly code: ErrorCode;
  readonly status: number;
  readonly faults: readonly RequestFault[];
  readonly retryAfterSeconds: number | undefined;
  readonly share: Share | undefined;
  readonly bottleneck: Bottleneck | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: ErrorCode, options: MediaErrorOptions = {}) {
    super(options.message ?? errorRegistry[code].message, { cause: options.cause });
    this.code = code;
    this.status = errorRegistry[code].status;
    this.faults = options.faults ?? [];
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.share = options.share;
    this.bottleneck = options.bottleneck;
    this.headers = options.headers ?? {};
  }
}

/** Whether an error says that the original cannot be shown, and not that something is out of order. */
export function isFaultOfOriginal(error: unknown): error is MediaError {
  return error instanceof MediaError && errorRegistry[error.code].fault === 'original';
}

/** Whether an original cannot be understood, or is too large to be. */
export function isUnreadable(error: unknown): boolean {
  return isFaultOfOriginal(error) && error.code !== 'TRANSFORM_TIMEOUT';
}

/** Whether an error says that the source failed, and nothing about the original. */
export function isOriginFailure(error: unknown): error is MediaError {
  return error instanceof MediaError && errorRegistry[error.code].fault === 'origin';
}

/** Returns a 405. @param allowed methods of the path, as in `Allow` */
export function methodNotAllowed(allowed: string): MediaError {
  const message = `The method is not allowed; use ${allowed.replace(/, (?=[^,]*$)/, ' or ')}.`;
  return new MediaError('METHOD_NOT_ALLOWED', { message, headers: { allow: allowed } });
}

/** Most nested causes that a message shows. */
const MAX_CAUSES = 8;

/** Returns the messages of an error and its causes, each after a colon, without full stops; empty without an error. */
export function formatCauses(error: unknown): string {
  let text = '';
  let cause = error;
  for (let depth = 0; cause !== undefined && depth < MAX_CAUSES; depth += 1) {
    const message = cause instanceof Error ? cause.message : String(cause);
    text += `: ${message.replace(/\.$/, '')}`;
    cause = cause instanceof Error ? cause.cause : undefined;
  }
  return text;
}

/** Returns why the origin could not be read, for an operator: the log and `darkroom check` use the same words. */
export function formatReadFailure(error: unknown): string {
  const isTimeout = error instanceof MediaError && error.code === 'ORIGIN_TIMEOUT';
  return isTimeout ? ': no response within ORIGIN_FIRST_BYTE_TIMEOUT_MS' : formatCauses(error);
}
