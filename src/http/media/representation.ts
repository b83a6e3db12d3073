import type { Readable } from 'node:stream';
import { MediaError } from '../../contract/errors.ts';
import type { Validators } from '../../pipeline/media-task.ts';
import type { Exchange } from '../exchange.ts';
import { formatHttpDate } from '../http-date.ts';
import { COMMON_HEADERS } from '../response-headers.ts';
import { isNotModified, isRangeApplicable } from './conditional.ts';
import { formatContentRange, parseRange } from './range.ts';

/** Properties of a body that are known before it is sent. */
interface Content {
  readonly contentType: string;
  readonly contentDisposition: string | undefined;
  readonly validators: Validators;
  /** Value of `X-Robots-Tag`; empty: none is sent. */
  readonly robotsTag: string;
  /** `undefined`: as much as comes. */
  readonly sizeBytes: number | undefined;
  /** Whether parts of it can be had; all have them but some of other sites. */
  readonly hasRanges?: boolean;
}

/**
 * A body's heads, ready to be sent, as often as it is: names and values in turn. How long it may be kept is not among
 * them: that depends on when, and on the URL.
 */
export interface Representation {
  readonly validators: Validators;
  readonly sizeBytes: number | undefined;
  readonly hasRanges: boolean;
  /** Fields of a 304, which the others begin with. */
  readonly validatorFields: readonly string[];
  /** Fields of a 206 without its length and range. */
  readonly partFields: readonly string[];
  /** Fields of a 200. */
  readonly wholeFields: readonly string[];
}

/** The part of a body that a request gets: the bytes `first` to `last`, both included. */
interface Part {
  readonly status: 200 | 206;
  readonly fields: readonly string[];
  readonly first: number;
  /** `undefined`: to the end, wherever that is. */
  readonly last: number | undefined;
}

const COMMON_FIELDS = Object.entries(COMMON_HEADERS).flat();

/** Prepares the heads that a body is sent with. */
export function createRepresentation(content: Content): Representation {
  const { contentType, contentDisposition, validators, sizeBytes, hasRanges = true } = content;
  const validatorFields = formatValidators(content);
  const partFields = [
    ...validatorFields,
    ...['content-type', contentType, 'accept-ranges', hasRanges ? 'bytes' : 'none'],
    ...(contentDisposition === undefined ? [] : ['content-disposition', contentDisposition]),
  ];
  const ofWhole = sizeBytes === undefined ? [] : ['content-length', String(sizeBytes)];
  const wholeFields = [...partFields, ...ofWhole];
  return { validators, sizeBytes, hasRanges, validatorFields, partFields, wholeFields };
}

/** Responds with a body in memory, as far as it is asked for. */
export function sendBytes(
  exchange: Exchange,
  representation: Representation,
  cacheControl: string,
  bytes: Buffer,
): void {
  const part = selectPart(exchange, representation, cacheControl);
  if (part === undefined) return;
  const { status, fields, first, last } = part;
  const isWhole = status === 200 || last === undefined;
  const body = isWhole ? bytes : bytes.subarray(first, last + 1);
  exchange.respond(status, fields, body, cacheControl);
}

/**
 * Responds with a body that has to be opened, as far as it is asked for.
 *
 * @returns whether it was opened
 */
export async function sendStream(
  exchange: Exchange,
  representation: Representation,
  cacheControl: string,
  open: (first: number, last: number | undefined) => Promise<Readable>,
): Promise<boolean> {
  const part = selectPart(exchange, representation, cacheControl);
  if (part === undefined) return false;
  const { status, fields, first, last } = part;
  if (exchange.request.method === 'HEAD') {
    exchange.respond(status, fields, undefined, cacheControl);
    return false;
  }
  const body = await open(first, last);
  exchange.respond(status, fields, body, cacheControl);
  return true;
}

/** Responds that what the client has is current (RFC 9110 §15.4.5). */
export function sendNotModified(
  exchange: Exchange,
  current: Pick<Content, 'validators' | 'robotsTag'>,
  cacheControl: string,
): void {
  exchange.respond(304, formatValidators(current), undefined, cacheControl);
}

/**
 * Finds what a request gets: the whole, or the range asked for (RFC 9110 §14). A HEAD has the headers of a GET
 * (§9.3.2), and a range means nothing to it (§14.2). A client that has the body already (§13), or asks for a
 * range outside it, has had its response here.
 */
function selectPart(
  exchange: Exchange,
  representation: Representation,
  cacheControl: string,
): Part | undefined {
  const { validators, sizeBytes, hasRanges, partFields, wholeFields } = representation;
  const { method, headers } = exchange.request;
  if (isNotModified(headers, validators)) {
    exchange.respond(304, representation.validatorFields, undefined, cacheControl);
    return undefined;
  }
  const last = sizeBytes === undefined ? undefined : sizeBytes - 1;
  const whole = { status: 200, fields: wholeFields, first: 0, last } as const;
  if (method === 'HEAD' || headers.range === undefined) return whole;
  if (!hasRanges || sizeBytes === undefined) return whole;
  const ifRange = headers['if-range'];
  const condition = Array.isArray(ifRange) ? ifRange[0] : ifRange;
  if (!isRangeApplicable(condition, validators)) return whole;
  const range = parseRange(headers.range, sizeBytes);
  if (range.kind === 'full') return whole;
  const contentRange = formatContentRange(range, sizeBytes);
  if (range.kind === 'unsatisfiable') {
    exchange.fail(new MediaError('RANGE_NOT_SATISFIABLE'), { 'content-range': contentRange });
    return undefined;
  }
  const partBytes = String(range.last - range.first + 1);
  const ofPart = ['content-length', partBytes, 'content-range', contentRange];
  const fields = [...partFields, ...ofPart];
  return { status: 206, fields, first: range.first, last: range.last };
}

function formatValidators({
  validators: { etag, lastModified },
  robotsTag,
}: Pick<Content, 'validators' | 'robotsTag'>): string[] {
  const fields = [...COMMON_FIELDS];
  if (robotsTag !== '') fields.push('x-robots-tag', robotsTag);
  if (etag !== undefined) fields.push('etag', etag);
  if (lastModified !== undefined) fields.push('last-modified', formatHttpDate(lastModified));
  return fields;
}
