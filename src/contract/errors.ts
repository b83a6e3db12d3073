/** Registry of all errors in responses; `npm run docs` generates the table of contract §5 from it. */

interface ErrorRow {
  readonly status: number;
  readonly message: string;
  /** Party at fault, which determines the log level. */
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
  NOT_FOUND: { status: 404, message: 'Path not found.', fault: 'client' },
  UNKNOWN_MEDIA: { status: 404, message: 'Media not found.', fault: 'client' },
  METHOD_NOT_ALLOWED: {
    status: 405,
    message: 'The method is not allowed; use GET, HEAD or OPTIONS.',
    fault: 'client',
  },
  REQUEST_TIMEOUT: { status: 408, message: 'The upload is too slow.', fault: 'client' },
  MEDIA_EXISTS: {
    status: 409,
    message: 'An object with this key already exists.',
    fault: 'client',
  },
  LENGTH_REQUIRED: { status: 411, message: 'The upload must declare its length.', fault: 'client' },
  PRECONDITION_FAILED: {
    status: 412,
    message: 'The media does not match If-Match or If-Unmodified-Since.',
    fault: 'client',
  },
  PAYLOAD_TOO_LARGE: {
    status: 413,
    message: 'The upload is too large.',
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
    message: 'The service is at capacity; try again later.',
    fault: 'load',
  },
  ORIGIN_TIMEOUT: {
    status: 504,
    message: 'The origin timed out.',
    fault: 'origin',
  },
  TRANSFORM_TIMEOUT: {
    status: 504,
    message: 'The transform timed out.',
    fault: 'original',
  },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof errorRegistry;

/** Validation error of a request; `path` names the invalid path segment, query parameter or member of the body. */
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

/** Error that a client can see: a row of the registry, with details for the response and the log. */
export class MediaError extends Error {
  override readonly name = 'MediaError';
  readonly code: ErrorCode;
  readonly status: number;
  readonly faults: readonly RequestFault[];
  /** For `OVERLOADED`, and with fractions for `RATE_LIMITED`. */
  readonly retryAfterSeconds: number | undefined;
  /** For `OVERLOADED`, in the log and metrics. */
  readonly bottleneck: Bottleneck | undefined;
  readonly headers: Readonly<Record<string, string>>;

  /**
   * @param details.message text for the client; omit for that of the registry
   * @param details.cause underlying error, for the log, never for the client
   */
  constructor(
    code: ErrorCode,
    details: Partial<Pick<MediaError, 'message' | 'cause' | 'faults' | 'headers'>> & {
      readonly retryAfterSeconds?: number;
      readonly bottleneck?: Bottleneck;
    } = {},
  ) {
    super(details.message ?? errorRegistry[code].message, { cause: details.cause });
    this.code = code;
    this.status = errorRegistry[code].status;
    this.faults = details.faults ?? [];
    this.retryAfterSeconds = details.retryAfterSeconds;
    this.bottleneck = details.bottleneck;
    this.headers = details.headers ?? {};
  }
}

/** Whether the original is at fault, and no part of the service. */
export function isFaultOfOriginal(error: unknown): error is MediaError {
  return error instanceof MediaError && errorRegistry[error.code].fault === 'original';
}

/** Whether the original is invalid, unsupported or too large. */
export function isUnreadable(error: unknown): boolean {
  return isFaultOfOriginal(error) && error.code !== 'TRANSFORM_TIMEOUT';
}

/** Whether the origin failed, regardless of the original. */
export function isOriginFailure(error: unknown): error is MediaError {
  return error instanceof MediaError && errorRegistry[error.code].fault === 'origin';
}

/** Creates a 405. @param allowed methods of the path, as in `Allow` */
export function methodNotAllowed(allowed: string): MediaError {
  const message = `The method is not allowed; use ${allowed.replace(/, (?=[^,]*$)/, ' or ')}.`;
  return new MediaError('METHOD_NOT_ALLOWED', { message, headers: { allow: allowed } });
}

const MAX_CAUSES = 8;

/** Formats an error and its causes: each message after a colon, without its full stop. Returns '' for `undefined`. */
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

export function formatReadFailure(error: unknown): string {
  const isTimeout = error instanceof MediaError && error.code === 'ORIGIN_TIMEOUT';
  return isTimeout ? ': no response within ORIGIN_FIRST_BYTE_TIMEOUT_MS' : formatCauses(error);
}
