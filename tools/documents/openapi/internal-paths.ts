import { type InternalPath, internalBodies } from '../../../src/contract/internal-request.ts';
import { onlyHeaders } from './headers.ts';
import type { PathItem, ResponseObject, Schema, Server } from './model.ts';

const internalServer: Server = {
  url: '{internal_url}',
  description: "The listener for the platform's API: INTERNAL_HOST and INTERNAL_PORT.",
  variables: { internal_url: { default: 'http://127.0.0.1:3100' } },
};

const text = { type: 'string' };
const count = { type: 'integer', minimum: 0 };
const edge = { type: ['integer', 'null'], minimum: 1 };

/** Schemas of the internal listener. */
export const internalSchemas: Readonly<Record<string, Schema>> = {
  InternalMetadata: {
    type: 'object',
    properties: {
      format: { ...text, description: 'Subtype of content_type, or mp3, m4a, mov, mkv, apng.' },
      content_type: { ...text, description: 'Detected by content.' },
      content_hash: { ...text, pattern: '^[0-9a-f]{64}$', description: 'SHA-256.' },
      size: { ...count, description: 'Bytes.' },
      width: { ...edge, description: 'After orientation, in square pixels; null for audio.' },
      height: edge,
      animated: { type: 'boolean' },
      duration: { ...count, description: 'Seconds, rounded up; absent where unknown.' },
      placeholder: { ...text, description: 'ThumbHash as base64; absent without an image.' },
      nsfw: { const: false, description: 'Always false: Darkroom does not scan.' },
      nsfw_probability: { const: 0 },
      base64: { ...text, description: 'Bytes of the media, if the request has with_base64.' },
    },
    required: [
      ...['format', 'content_type', 'content_hash', 'size', 'width', 'height', 'animated'],
      ...['nsfw', 'nsfw_probability'],
    ],
  },
  Sniffed: {
    type: 'object',
    properties: { content_type: { type: ['string', 'null'] } },
    required: ['content_type'],
  },
  Frames: {
    type: 'object',
    properties: {
      frames: {
        type: 'array',
        maxItems: 1,
        items: {
          type: 'object',
          properties: { timestamp: { const: 0 }, mime_type: { const: 'image/jpeg' }, base64: text },
          required: ['timestamp', 'mime_type', 'base64'],
        },
      },
    },
    required: ['frames'],
  },
};

const headers = onlyHeaders('Cache-Control', 'Content-Length');

/** Path items of the internal listener, by path. */
export const internalPaths: Readonly<Record<string, PathItem>> = {
  '/_health': {
    get: {
      servers: [internalServer],
      operationId: 'getInternalHealth',
      tags: ['internal'],
      summary: 'Returns 200 while the process runs, and the mode of signed attachments',
      security: [],
      responses: { 200: sent('text/plain', 'OK attachment_signature={mode}', text) },
    },
  },
  '/_metadata': post('/_metadata', 'Returns metadata of media', {
    200: json('InternalMetadata', 'Metadata of the media.'),
  }),
  '/_frames': post('/_frames', 'Returns a frame that represents the media', {
    200: json('Frames', 'At most one frame.'),
  }),
  '/_sniff': post('/_sniff', 'Returns the type of an upload, by its first bytes', {
    200: json('Sniffed', 'The media type, or null if the bytes are not media.'),
    404: { $ref: '#/components/responses/UnknownOriginal' },
  }),
  '/_thumbnail': post('/_thumbnail', 'Returns a thumbnail of an upload', {
    200: sent('image/webp', 'An image of at most 512 px, or a poster at its own size.', {}),
    404: { $ref: '#/components/responses/UnknownOriginal' },
  }),
};

function post(
  path: InternalPath,
  summary: string,
  responses: NonNullable<PathItem['post']>['responses'],
): PathItem {
  const name = path.slice(2);
  return {
    post: {
      servers: [internalServer],
      operationId: `${name}Internal`,
      tags: ['internal'],
      summary,
      security: [{ internalToken: [] }],
      requestBody: {
        required: true,
        content: { 'application/json': { schema: internalBodies[path]() } },
      },
      responses: {
        400: json(
          'InvalidFormBody',
          'The body is invalid, or its media cannot be read or fetched.',
        ),
        401: { $ref: '#/components/responses/Unauthorized' },
        413: json('InvalidFormBody', 'The body is too long.'),
        415: json('InvalidFormBody', 'The body is not JSON.'),
        451: json('Unavailable', 'The media are blocked.'),
        500: { $ref: '#/components/responses/Failed' },
        502: { $ref: '#/components/responses/OriginFailed' },
        503: { $ref: '#/components/responses/AtCapacity' },
        504: { $ref: '#/components/responses/TimedOut' },
        ...responses,
      },
    },
  };
}

function json(schema: string, description: string): ResponseObject {
  const $ref = `#/components/schemas/${schema}`;
  return sent('application/json', description, { $ref });
}

function sent(type: string, description: string, schema: Schema): ResponseObject {
  return { description, headers, content: { [type]: { schema } } };
}
