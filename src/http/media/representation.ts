import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { MediaError } from '../../contract/errors.ts';
import type { Validators } from '../../pipeline/validators.ts';
import { formatHttpDate } from '../http-date.ts';
import { BufferPieces, PIECE_BYTES } from './buffer-chunks.ts';
import { isRangeApplicable } from './conditional.ts';
import { exactLength } from './exact-length.ts';
import { formatContentRange, parseRange } from './range.ts';

/** A body that can be sent whole, in part, or not at all. */
export interface Representation {
  readonly contentType: string;
  readonly contentDisposition: string | undefined;
  readonly cacheControl: string;
  readonly validators: Validators;
  readonly sizeBytes: number;
  /** The bytes `first` to `last`, both included. */
  readonly open: (first: number, last: number) => Buffer | Promise<Readable>;
}

/**
 * Sends a body: whole, or the range asked for (RFC 9110 §14); of a HEAD the headers alone, the same
 * as a GET's (§9.3.2), for which a range means nothing (§14.2).
 *
 * @throws MediaError `RANGE_NOT_SATISFIABLE`, with the `Content-Range` of a 416 set
 */
export async function sendRepresentation(
  request: FastifyRequest,
  reply: FastifyReply,
  representation: Representation,
): Promise<FastifyReply> {
  const { sizeBytes, contentType, contentDisposition, cacheControl, validators } = representation;
  const isGet = request.method === 'GET';
  const isRangeWanted = isGet && isRangeApplicable(single(request.headers['if-range']), validators);
  const range = parseRange(isRangeWanted ? request.headers.range : undefined, sizeBytes);
  if (range.kind === 'unsatisfiable') {
    reply.header('content-range', formatContentRange(range, sizeBytes));
    throw new MediaError('RANGE_NOT_SATISFIABLE');
  }

  const { first, last } = range.kind === 'full' ? { first: 0, last: sizeBytes - 1 } : range;
  const lengthBytes = last - first + 1;
  const body = isGet ? await representation.open(first, last) : undefined;
  setValidators(reply, validators, cacheControl);
  reply.header('content-type', contentType);
  reply.header('content-length', lengthBytes);
  reply.header('accept-ranges', 'bytes');
  if (contentDisposition !== undefined) reply.header('content-disposition', contentDisposition);
  if (range.kind === 'range') {
    reply.status(206).header('content-range', formatContentRange(range, sizeBytes));
  }
  if (body instanceof Readable) return reply.send(exactLength(body, lengthBytes));
  const isInPieces = body !== undefined && body.length > PIECE_BYTES;
  return reply.send(isInPieces ? new BufferPieces(body) : body);
}

/** Tells a client that what it has is current (RFC 9110 §15.4.5). */
export function sendNotModified(
  reply: FastifyReply,
  validators: Validators,
  cacheControl: string,
): FastifyReply {
  setValidators(reply, validators, cacheControl);
  return reply.status(304).send();
}

function setValidators(
  reply: FastifyReply,
  { etag, lastModified }: Validators,
  cacheControl: string,
): void {
  reply.header('etag', etag);
  reply.header('cache-control', cacheControl);
  if (lastModified !== undefined) reply.header('last-modified', formatHttpDate(lastModified));
}

function single(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}
