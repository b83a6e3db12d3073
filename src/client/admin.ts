/** Client of the admin listener: `@darkroom-media/darkroom/admin`. */

import { findKeyFault, parseBase, quote } from './values.ts';

export interface AdminClientOptions {
  /** Address of the admin listener, such as `http://127.0.0.1:9090`. */
  readonly adminUrl: string;
  /** Value of `ADMIN_TOKEN`. */
  readonly token: string;
  /** Timeout of a request in milliseconds; omit for 30,000. */
  readonly timeoutMs?: number | undefined;
}

/** Renderings to purge, selected by exactly one of these members. */
export type PurgeRequest =
  /** Paths and queries of single renderings. */
  | { readonly paths: readonly string[] }
  /** Keys of originals, for all their renderings. */
  | { readonly assets: readonly string[] }
  /** Prefix of keys: complete segments and a trailing slash. */
  | { readonly prefix: string }
  /** URLs of other sites, for all renderings of their media. */
  | { readonly external: readonly string[] }
  /** Prefixes of URLs without the scheme, such as `cdn.example.com/avatars/1/ab12`. */
  | { readonly prefixes: readonly string[] };

export interface PurgeResult {
  /** Number of removed renderings; absent if a CDN is purged as well. */
  readonly removed?: { readonly memory: number; readonly store: number };
  /** Id for `GET /purges/{id}`, if a CDN is purged as well. */
  readonly id?: string;
}

/** Originals to block or unblock, at least one. */
export interface BlockRequest {
  /** Keys of originals. */
  readonly keys?: readonly string[];
  /** Prefixes of keys: complete segments and a trailing slash. */
  readonly prefixes?: readonly string[];
  /** SHA-256 digests in hexadecimal, which apply to all keys and URLs of these bytes. */
  readonly sha256?: readonly string[];
  /** URLs of other sites. */
  readonly external?: readonly string[];
}

export interface BlockOptions {
  /** Whether the response is a 404, as for missing media, instead of a 451; omit for `false`. */
  readonly hidden?: boolean;
  /** Text for operators. */
  readonly note?: string;
}

export interface BlockResult {
  /** Generation of the block list that contains the change. */
  readonly generation: number;
}

/** Metadata of an original; `null` if not applicable or unknown. */
export interface Metadata {
  readonly key: string;
  readonly etag: string | null;
  /** In bytes. */
  readonly size: number;
  readonly content_type: string;
  readonly kind: 'image' | 'video' | 'audio' | 'file';
  /** In square pixels, after orientation. */
  readonly width: number | null;
  readonly height: number | null;
  readonly animated: boolean | null;
  readonly frames: number | null;
  /** In seconds. */
  readonly duration: number | null;
  readonly codec: string | null;
  readonly has_audio: boolean | null;
  readonly transformable: boolean;
  /** ThumbHash as unpadded base64. */
  readonly placeholder: string | null;
  readonly placeholder_version: 1 | null;
  readonly sha256: string | null;
}

export interface MetadataOptions {
  /** Whether to compute the placeholder, which renders the original; omit for `true`. */
  readonly placeholder?: boolean;
  /** Whether to compute the digest, which reads the complete original; omit for `false`. */
  readonly sha256?: boolean;
}

export interface Readiness {
  readonly status: 'ready' | 'degraded' | 'not ready';
  readonly reasons: readonly string[];
  readonly version: string;
  readonly commit?: string;
}

/** Validation error of a request. */
export interface RequestFault {
  readonly path: string;
  readonly message: string;
}

/** Error response of the admin listener. */
export class AdminError extends Error {
  override readonly name = 'AdminError';
  readonly status: number;
  /** Stable code, such as `INVALID_FORM_BODY`; `undefined` if the response is not from Darkroom. */
  readonly code: string | undefined;
  readonly faults: readonly RequestFault[];
  /** Value of `Retry-After` in seconds. */
  readonly retryAfterSeconds: number | undefined;

  constructor(response: Response, body: ErrorBody) {
    const { code, message, errors = [] } = body;
    const faults = errors.map((fault) => ` ${fault.path && `${fault.path}: `}${fault.message}`);
    super(`${response.status} ${code ?? response.statusText}: ${message ?? ''}${faults.join('')}`);
    this.status = response.status;
    this.code = code;
    this.faults = errors;
    const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN);
    this.retryAfterSeconds = Number.isNaN(retryAfter) ? undefined : retryAfter;
  }
}

interface ErrorBody {
  readonly code?: string;
  readonly message?: string;
  readonly errors?: readonly RequestFault[];
}

/**
 * Client of the admin listener. Methods throw an `AdminError` for an error response, and the error of `fetch` without a
 * response. Keep the token secret from clients of the platform.
 */
export class AdminClient {
  readonly #adminUrl: string;
  readonly #token: string;
  readonly #timeoutMs: number;

  constructor({ adminUrl, token, timeoutMs = 30_000 }: AdminClientOptions) {
    this.#adminUrl = parseBase('adminUrl', adminUrl);
    this.#token = token;
    this.#timeoutMs = timeoutMs;
  }

  /** Removes renderings from memory, from the result store, and from the CDN if one is configured. */
  purge(request: PurgeRequest): Promise<PurgeResult> {
    return this.#send('POST', '/purge', request);
  }

  /** Blocks originals under all their URLs. */
  block(request: BlockRequest, options: BlockOptions = {}): Promise<BlockResult> {
    return this.#send('POST', '/blocks', { ...request, ...options });
  }

  unblock(request: BlockRequest): Promise<BlockResult> {
    return this.#send('DELETE', '/blocks', request);
  }

  /** Returns the metadata of an original, such as its dimensions. */
  async metadata(key: string, options: MetadataOptions = {}): Promise<Metadata> {
    const fault = findKeyFault(key);
    if (fault !== undefined) throw new RangeError(`key is ${quote(key)}; expected ${fault}.`);
    const path = key.split('/').map(encodeURIComponent).join('/');
    const query = new URLSearchParams(
      Object.entries(options).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, String(value)] as [string, string]],
      ),
    ).toString();
    return this.#send('GET', `/metadata/${path}${query && `?${query}`}`);
  }

  /** Returns whether the replica should receive requests, and the reasons if not. */
  readiness(): Promise<Readiness> {
    return this.#send('GET', '/readyz');
  }

  async #send<Result>(method: string, path: string, body?: unknown): Promise<Result> {
    const response = await fetch(this.#adminUrl + path, {
      method,
      headers: {
        Authorization: `Bearer ${this.#token}`,
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(this.#timeoutMs),
    });
    const text = await response.text();
    const isJson = /^application\/json/.test(response.headers.get('content-type') ?? '');
    const value: unknown = isJson ? JSON.parse(text) : {};
    // A 503 of `/readyz` is a result: the replica is not ready.
    if (response.ok || (response.status === 503 && path === '/readyz' && isJson)) {
      return value as Result;
    }
    throw new AdminError(response, value as ErrorBody);
  }
}
