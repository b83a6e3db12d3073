import { expect } from 'vitest';
import { commonHeaders, sendRaw } from '../support/http/raw-http.ts';
import type { WireResponse } from '../support/http/wire-response.ts';
import {
  type Canonical,
  canonicalOf,
  expectedQuery,
  expectedVerdict,
  externalRow,
  parseTarget,
  queryOf,
  splitTarget,
  type Verdict,
} from './contract-oracle.ts';
import { DocumentChecker } from './document-checker.ts';
import {
  checkMedia,
  checkOtherMethod,
  checkRefusal,
  formatOf,
  isCurrent,
  type Learned,
  mediaHeadersOf,
  NOT_FOUND,
  type Refused,
  refusal,
  type TargetKind,
  UNKNOWN_MEDIA,
  valueOfHeader,
} from './response-checks.ts';
import { endOf, expectedUpload, isRelayPath, readExternalPath } from './signed-oracle.ts';
import { formatRequest, MARKER, type ValidRequest } from './surface-requests.ts';
import { CHANGED_AT, type Original, readDefaultAvatar } from './surface-storage.ts';

/** Meaning of a target: its row of the contract, the verdict, and the expiry. */
interface TargetInfo {
  readonly template: string | undefined;
  readonly verdict: Verdict | { readonly kind: Exclude<TargetKind, Verdict['kind']> };
  /** Expiry of a signed URL, in Unix seconds. */
  readonly expiresAtSeconds?: number;
}

export interface World {
  readonly port: number;
  /** By key, or by URL for external media; uploads are added. */
  readonly originals: Map<string, Original>;
  /** Origin of the other site. If set, attachments are signed and uploads permitted. */
  readonly siteOrigin?: string;
  readonly maxUploadBytes?: number;
}

const withoutMedia = {
  ...{ 'unknown path': NOT_FOUND, hidden: UNKNOWN_MEDIA },
  unauthorized: refusal(401, 'UNAUTHORIZED', 'no-store'),
  forbidden: refusal(502, 'ORIGIN_ERROR', 'no-store'),
  upload: refusal(405, 'METHOD_NOT_ALLOWED', 'no-store'),
};

const nowSeconds = (): number => Math.floor(Date.now() / 1000);

/** Computes the expected response from the contract and from earlier responses to the same URL. */
export class SurfaceModel {
  readonly #world: World;
  readonly #learned = new Map<string, Learned>();
  readonly document = new DocumentChecker();
  readonly statuses = new Map<number, number>();
  /** Headers of a missing attachment, which those of a rejected one must equal. */
  #missing: object | undefined;

  constructor(world: World) {
    this.#world = world;
  }

  #readTarget(target: string): TargetInfo {
    const { siteOrigin } = this.#world;
    const template = parseTarget(target)?.row.path;
    const verdict = expectedVerdict(target);
    if (siteOrigin === undefined) return { template, verdict };
    if (isRelayPath(target)) return { template: '/v1/relay/{key}', verdict: { kind: 'upload' } };
    const external = readExternalPath(target);
    if (external !== undefined) {
      return {
        template: externalRow.path,
        verdict: expectedExternal(target, external, siteOrigin),
      };
    }
    if (verdict.kind !== 'media' || !template?.startsWith('/attachments/')) {
      return { template, verdict };
    }
    const expiresAtSeconds = endOf(target, verdict.canonical.originKey, nowSeconds());
    if (expiresAtSeconds === undefined) return { template, verdict: { kind: 'hidden' } };
    return { template, verdict, expiresAtSeconds };
  }

  /** Returns the expected response to a plain GET. */
  async expect(target: string): Promise<Learned | Refused> {
    const { verdict } = this.#readTarget(target);
    if (verdict.kind === 'refused') {
      const { faults } = verdict;
      return { ...refusal(400, 'INVALID_FORM_BODY', 'public, max-age=300'), faults };
    }
    if (verdict.kind === 'default avatar')
      return Number(verdict.index) > 5 ? UNKNOWN_MEDIA : this.#learn(target, verdict);
    if (verdict.kind !== 'media') return withoutMedia[verdict.kind];
    const original = this.#world.originals.get(verdict.canonical.originKey);
    if (original === undefined) return UNKNOWN_MEDIA;
    const { passthrough } = verdict.canonical;
    const status = passthrough ? (original.shown ?? 200) : original.transformed;
    if (status === 200) return this.#learn(target, verdict);
    const code = status === 415 ? 'UNSUPPORTED_MEDIA_TYPE' : 'UNPROCESSABLE_MEDIA';
    return { ...refusal(status, code, 'public, max-age=300'), isFound: true };
  }

  async check(request: ValidRequest, response: WireResponse): Promise<void> {
    const { method, target } = request;
    this.statuses.set(response.status, (this.statuses.get(response.status) ?? 0) + 1);
    this.checkAny(response);
    const { template, verdict, expiresAtSeconds } = this.#readTarget(target);
    this.document.check(method, template, response);
    const { 'cache-control': cacheControl, 'cdn-cache-control': repeated } = response.headers;
    expect(repeated).toBe(this.#world.siteOrigin === undefined ? undefined : cacheControl);
    const id = valueOfHeader(request, 'x-request-id');
    // A hit may have no log line.
    if (id === MARKER) expect([id, undefined]).toContain(response.headers['x-request-id']);
    const faults = verdict.kind === 'refused' ? verdict.faults : [];
    if (template !== externalRow.path) {
      expect(this.document.faultsOf(target) ?? [], target).toEqual(faults);
    }
    if (verdict.kind === 'upload' && method === 'PUT') return this.#checkUpload(request, response);
    if (method !== 'GET' && method !== 'HEAD')
      return checkOtherMethod(method, verdict.kind, response);
    const expected = await this.expect(target);
    if (expected.kind === 'refused') {
      if (verdict.kind === 'upload') checkOtherMethod(method, verdict.kind, response);
      // A conditional request gets a 304, unless the error is cached.
      const isKnown = expected.isFound && isCurrent(request, undefined);
      if (isKnown && response.status === 304) return;
      checkRefusal(response, expected, method === 'HEAD');
      if (expected === UNKNOWN_MEDIA) this.#checkMissing(response);
    } else {
      checkMedia(request, response, expected, expiresAtSeconds);
    }
  }

  /** A rejected attachment must look like a missing one. */
  #checkMissing({ headers }: WireResponse): void {
    this.#missing ??= mediaHeadersOf(headers);
    expect(mediaHeadersOf(headers)).toEqual(this.#missing);
  }

  #checkUpload(request: ValidRequest, response: WireResponse): void {
    const { originals, maxUploadBytes = 0 } = this.#world;
    const body = Buffer.from(request.body.kind === 'none' ? '' : request.body.text, 'latin1');
    const contentType = valueOfHeader(request, 'content-type');
    const contentEncoding = valueOfHeader(request, 'content-encoding');
    const framing = request.body.kind;
    const upload = { target: request.target, contentType, contentEncoding, body, framing };
    const isThere = (key: string): boolean => originals.has(key);
    const verdict =
      request.refused ?? expectedUpload(upload, maxUploadBytes, isThere, nowSeconds());
    if (typeof verdict !== 'string') {
      const [status, code] = verdict;
      const faults = status === 400 ? { faults: ['key'] } : {};
      checkRefusal(response, { ...refusal(status, code, 'no-store'), ...faults }, false);
      return;
    }
    expect([response.status, response.body.length], request.target).toEqual([200, 0]);
    expect(response.headers.etag).toMatch(/^"[!-~]+"$/);
    expect(response.headers['cache-control']).toBe('no-store');
    const format = formatOf(body);
    const isText = format === 'unknown';
    originals.set(verdict, {
      ...{ bytes: body, isUploaded: true, disposition: 'inline' },
      transformed: isText ? 415 : 200,
      contentType: isText ? 'text/plain; charset=utf-8' : `image/${format}`,
    });
    // Responses are stored by verdict, which contains the key.
    for (const key of this.#learned.keys()) {
      if (JSON.parse(key).canonical?.originKey === verdict) this.#learned.delete(key);
    }
  }

  /** Checks the rules for all responses. */
  checkAny(response: WireResponse): void {
    const { status, headers, body } = response;
    if (status !== 502) expect(status).toBeLessThan(500);
    for (const [name, value] of Object.entries(headers)) {
      if (name === 'x-request-id') continue; // the client's own id is returned
      expect(`${name}: ${value}`).not.toContain(MARKER);
    }
    expect(body.includes('CANARY')).toBe(false);
    for (const name of ['set-cookie', 'location', 'server']) {
      expect(headers).not.toHaveProperty(name);
    }
    if (status === 204 || status === 304) expect(body).toHaveLength(0);
    expect(headers).toMatchObject(commonHeaders);
    if (status >= 400) this.document.checkError(response);
    if (status >= 400 && body.length > 0) {
      expect(headers['content-type']).toBe('application/json; charset=utf-8');
    }
  }

  async #learn(target: string, verdict: Extract<Verdict, { kind: 'media' | 'default avatar' }>) {
    const key = JSON.stringify(verdict);
    const known = this.#learned.get(key);
    if (known !== undefined) return known;

    const response = await sendRaw(this.#world.port, 'GET', target);
    this.checkAny(response);
    this.document.check('GET', this.#readTarget(target).template, response);
    expect(response.status).toBe(200);
    const { etag } = response.headers;
    if (etag !== undefined) {
      expect(etag).toMatch(/^"[!-~]+"$/);
      for (const other of this.#learned.values()) expect(other.etag).not.toBe(etag);
    }
    const learned =
      verdict.kind === 'media'
        ? this.#learnMedia(response, verdict.canonical, verdict.filename)
        : await learnAvatar(response, verdict.index);
    this.#learned.set(key, learned);
    return learned;
  }

  #learnMedia(response: WireResponse, canonical: Canonical, filename: string | undefined): Learned {
    const { headers, body } = response;
    const original = this.#world.originals.get(canonical.originKey);
    if (original === undefined) throw new Error(canonical.originKey);
    const { contentType, disposition, bytes, ofSite, isUploaded = false } = original;
    const { passthrough } = canonical;
    const isValidated = !passthrough || ofSite?.hasValidator !== false;
    const changedAt = ofSite === undefined && !isUploaded ? CHANGED_AT.toUTCString() : undefined;
    if (!isUploaded) expect(headers['last-modified']).toBe(changedAt);
    expect(headers['x-robots-tag']).toBe('noindex');
    expect(headers['accept-ranges']).toBe(isValidated ? 'bytes' : 'none');
    expect(headers.etag !== undefined).toBe(isValidated);
    const type = canonical.format === undefined ? contentType : `image/${canonical.format}`;
    expect(headers['content-type']).toBe(type);
    if (passthrough) expect(body.equals(bytes)).toBe(true);
    else expect(`image/${formatOf(body)}`).toBe(type);
    const sent = headers['content-disposition'];
    if (filename === undefined) expect(sent).toBeUndefined();
    else expect(sent?.split(';')[0]).toBe(disposition);
    const shown = filename?.replaceAll(/[\u202a-\u202e]/g, '');
    if (passthrough) expect(sent && nameIn(sent), sent).toBe(shown);
    const date = headers['last-modified'];
    return {
      kind: 'media',
      response,
      etag: headers.etag,
      isPassthrough: passthrough,
      isOfSite: ofSite !== undefined,
      changedAtSeconds: date === undefined ? undefined : Date.parse(date) / 1000,
      cacheControl: ofSite?.cacheControl ?? 'public, max-age=31536000, immutable',
    };
  }
}

/** Returns the file name of a Content-Disposition, preferably `filename*` (RFC 6266). */
function nameIn(header: string): string {
  const [, plain = '', encoded] =
    /filename="((?:[^"\\]|\\.)*)"(?:; filename\*=UTF-8''(.*))?$/.exec(header) ?? [];
  return encoded === undefined ? plain.replaceAll(/\\(.)/g, '$1') : decodeURIComponent(encoded);
}

async function learnAvatar(response: WireResponse, index: string): Promise<Learned> {
  expect(response.body.equals(await readDefaultAvatar(index))).toBe(true);
  expect(response.headers).toMatchObject({
    'content-type': 'image/png',
    'accept-ranges': 'bytes',
    etag: expect.any(String),
  });
  for (const name of ['content-disposition', 'x-robots-tag']) {
    expect(response.headers).not.toHaveProperty(name);
  }
  return {
    ...{ kind: 'media', response, etag: response.headers.etag, changedAtSeconds: undefined },
    ...{ isPassthrough: false, isShipped: true, cacheControl: 'public, max-age=86400' },
  };
}

/** Returns the expected verdict on a signed path of external media. */
function expectedExternal(
  target: string,
  url: NonNullable<ReturnType<typeof readExternalPath>>,
  siteOrigin: string,
): TargetInfo['verdict'] {
  if (url === 'unauthorized') return { kind: url };
  const { faults, parameters } = expectedQuery(queryOf('external', splitTarget(target)[1]));
  if (faults.length > 0) return { kind: 'refused', faults: faults.sort() };
  if (url === 'forbidden' || url.origin !== siteOrigin) return { kind: 'forbidden' };
  const parts = { row: externalRow, values: {}, extension: undefined, parameters };
  return { kind: 'media', canonical: { ...canonicalOf(parts), originKey: url.href } };
}

/** Formats a request, with its own entity tag inserted. */
export async function bytesOf(model: SurfaceModel, request: ValidRequest): Promise<Buffer> {
  const expected = await model.expect(request.target);
  return formatRequest(request, expected.kind === 'media' ? expected.etag : undefined);
}
