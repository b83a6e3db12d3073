import { blockKinds, describeBlockOrder } from '../../../src/contract/block-order.ts';
import { describeMetadata, metadataParameters } from '../../../src/contract/metadata.ts';
import { describePurgeOrder } from '../../../src/contract/purge-order.ts';
import { onlyHeaders } from './headers.ts';
import type { Operation, Parameter, PathItem, ResponseObject, Schema, Server } from './model.ts';

const adminServer: Server = {
  url: '{admin_url}',
  description: 'The admin listener: ADMIN_HOST and ADMIN_PORT.',
  variables: { admin_url: { default: 'http://127.0.0.1:9090' } },
};

const count = { type: 'integer', minimum: 0 };

const purgeState = {
  id: { type: 'string' },
  status: {
    enum: ['pending', 'done', 'failed'],
    description:
      'pending: the CDN in front has not taken the purge twice yet; failed: it has taken nothing for a day.',
  },
  reason: { type: 'string', description: 'Why the CDN has last refused a call.' },
} as const;

/** Schemas of the admin listener. */
export const adminSchemas: Readonly<Record<string, Schema>> = {
  PurgeOrder: describePurgeOrder(),
  Purged: {
    type: 'object',
    properties: {
      removed: {
        type: 'object',
        description: 'How many renderings there were.',
        properties: { memory: count, store: count },
        required: ['memory', 'store'],
      },
    },
    required: ['removed'],
  },
  BlockOrder: describeBlockOrder(),
  BlockGeneration: {
    type: 'object',
    properties: { generation: { ...count, description: 'The list that has the change.' } },
    required: ['generation'],
  },
  Blocks: {
    type: 'object',
    properties: {
      generation: count,
      blocks: {
        type: 'array',
        items: {
          type: 'object',
          properties: {
            kind: { enum: blockKinds },
            value: { type: 'string' },
            hidden: { type: 'boolean' },
            note: { type: 'string' },
          },
          required: ['kind', 'value', 'hidden', 'note'],
        },
      },
    },
    required: ['generation', 'blocks'],
  },
  MediaMetadata: describeMetadata(),
  PurgeAtEdge: {
    type: 'object',
    properties: { id: { type: 'string', description: 'For GET /purges/{id}.' } },
    required: ['id'],
    additionalProperties: false,
  },
  PurgeState: {
    type: 'object',
    properties: purgeState,
    required: ['id', 'status'],
    additionalProperties: false,
  },
  PendingPurges: {
    type: 'object',
    properties: {
      count: { ...count, description: 'Pending purges of all replicas.' },
      purges: {
        type: 'array',
        description: 'The oldest thousand of them.',
        items: {
          type: 'object',
          properties: { ...purgeState, pendingSeconds: count },
          required: ['id', 'status', 'pendingSeconds'],
          additionalProperties: false,
        },
      },
    },
    required: ['count', 'purges'],
    additionalProperties: false,
  },
  Liveness: {
    type: 'object',
    properties: { status: { const: 'alive' } },
    required: ['status'],
  },
  Readiness: {
    type: 'object',
    properties: {
      status: {
        enum: ['ready', 'degraded', 'not ready'],
        description: 'degraded: requests should come here, but not all of them can be served.',
      },
      reasons: {
        type: 'array',
        items: { type: 'string' },
        description: 'What is in the way, or short of what it should be.',
      },
      version: { type: 'string', description: 'The release of the program.' },
      commit: {
        type: 'string',
        description: 'The git commit that it was built from, where the build knew it.',
      },
    },
    required: ['status', 'reasons', 'version'],
  },
  Unauthorized: describeError('UNAUTHORIZED'),
  BlocklistUnavailable: describeError('BLOCKLIST_UNAVAILABLE'),
  StoreTimeout: describeError('STORE_TIMEOUT'),
  StoreError: describeError('STORE_ERROR'),
  JournalError: describeError('JOURNAL_ERROR'),
};

/** Responses of the admin listener that several operations have. */
export const adminResponses: Readonly<Record<string, ResponseObject>> = {
  Unauthorized: {
    ...json('Unauthorized', 'There is no token, or another one.'),
    headers: onlyHeaders('Cache-Control', 'Content-Length', 'WWW-Authenticate'),
  },
  BadOrder: json('InvalidFormBody', 'The body is no order, no JSON, or too long.'),
  Failed: json('InternalError', 'The service has failed.'),
  BadQuestion: json('InvalidFormBody', 'The key is none of an original, or a parameter is wrong.'),
  UnknownOriginal: json('UnknownMedia', 'The storage has no such object.'),
  OriginFailed: json(
    'OriginError',
    'The storage has failed, or the original was replaced while it was read.',
  ),
  Occupied: json('Overloaded', 'The service is at its capacity.', 'Retry-After'),
  Late: json(
    ['OriginTimeout', 'TransformTimeout'],
    'The storage has not responded in time, or the facts took longer than a transform may.',
  ),
  PurgeNotStored: {
    ...json(
      ['Overloaded', 'JournalError'],
      'Other purges take too long: the memory is purged, and the store is not. Or too many purges wait for the CDN in front, or the purge cannot be stored for it: the memory and the store are purged, and the CDN is not.',
    ),
    headers: {
      ...onlyHeaders('Cache-Control', 'Content-Length'),
      'Retry-After': { $ref: '#/components/headers/Retry-After-If-Any' },
    },
  },
  PurgesUnreadable: json('JournalError', 'Purges for the CDN cannot be read.'),
  NoList: json('NotFound', 'There is no list of blocks: BLOCKLIST.'),
  ListUnavailable: json(
    'BlocklistUnavailable',
    'The list cannot be read or written; the last good one holds.',
  ),
  StoreFailed: json(
    'StoreError',
    'The store of renderings has failed: it is read-only, or a link is in its way; the memory is purged, and a part of the store may be.',
  ),
  Stalled: json(
    'StoreTimeout',
    'The store of renderings does not respond; the memory is purged, and a part of the store may be.',
  ),
};

const listFailures = {
  400: { $ref: '#/components/responses/BadOrder' },
  401: { $ref: '#/components/responses/Unauthorized' },
  404: { $ref: '#/components/responses/NoList' },
  500: { $ref: '#/components/responses/Failed' },
  503: { $ref: '#/components/responses/ListUnavailable' },
} as const;

const withToken = [{ adminToken: [] }];

/** A path item per path of the admin listener. */
export const adminPaths: Readonly<Record<string, PathItem>> = {
  '/healthz': get({
    operationId: 'getHealth',
    summary: 'Whether the process can respond at all',
    responses: { 200: json('Liveness', 'It can.') },
  }),
  '/readyz': get({
    operationId: 'getReadiness',
    summary: 'Whether requests should come here',
    responses: {
      200: json('Readiness', 'They should.'),
      503: json('Readiness', 'They should not.'),
    },
  }),
  '/openapi.json': get({
    operationId: 'getOpenapi',
    summary: 'This document',
    responses: { 200: { ...json(undefined, 'OpenAPI 3.1.') } },
  }),
  '/metrics': get({
    operationId: 'getMetrics',
    summary: 'What was counted, for Prometheus',
    security: withToken,
    responses: {
      200: {
        description: 'Text exposition format 0.0.4.',
        headers: onlyHeaders('Cache-Control', 'Content-Length'),
        content: { 'text/plain': { schema: { type: 'string' } } },
      },
      401: { $ref: '#/components/responses/Unauthorized' },
      500: { $ref: '#/components/responses/Failed' },
    },
  }),
  '/metadata/{key}': get({
    operationId: 'getMetadata',
    summary: 'The facts of an original, computed once for each of its states',
    security: withToken,
    parameters: [
      {
        name: 'key',
        in: 'path',
        required: true,
        description:
          'Key of the original, see x-origin-key: each segment is percent-encoded, the slashes between them are not. A hash may have its a_.',
        schema: { type: 'string' },
        example: 'attachments/1/2/clip.mp4',
      },
      ...Object.entries(metadataParameters).map(([name, { default: value, description }]) => ({
        name,
        in: 'query' as const,
        required: false,
        description,
        schema: { type: 'boolean', default: value },
      })),
    ],
    responses: {
      200: json('MediaMetadata', 'Every field is there; null: not applicable, or unknown.'),
      400: { $ref: '#/components/responses/BadQuestion' },
      401: { $ref: '#/components/responses/Unauthorized' },
      404: { $ref: '#/components/responses/UnknownOriginal' },
      500: { $ref: '#/components/responses/Failed' },
      502: { $ref: '#/components/responses/OriginFailed' },
      503: { $ref: '#/components/responses/Occupied' },
      504: { $ref: '#/components/responses/Late' },
    },
  }),
  '/purge': {
    post: {
      servers: [adminServer],
      operationId: 'purge',
      tags: ['admin'],
      summary: 'Forgets renderings, and has their originals looked for again',
      security: withToken,
      requestBody: {
        required: true,
        content: { 'application/json': { schema: { $ref: '#/components/schemas/PurgeOrder' } } },
      },
      responses: {
        200: json('Purged', 'They are forgotten.'),
        202: json(
          'PurgeAtEdge',
          'They are forgotten here, and the CDN in front (EDGE) gets the purge; there is no 200 then.',
        ),
        400: { $ref: '#/components/responses/BadOrder' },
        401: { $ref: '#/components/responses/Unauthorized' },
        413: { $ref: '#/components/responses/BadOrder' },
        415: { $ref: '#/components/responses/BadOrder' },
        500: { $ref: '#/components/responses/Failed' },
        502: { $ref: '#/components/responses/StoreFailed' },
        503: { $ref: '#/components/responses/PurgeNotStored' },
        504: { $ref: '#/components/responses/Stalled' },
      },
    },
  },
  '/purges': getPurges(
    'getPurges',
    'Purges that the CDN in front has not taken twice yet',
    'PendingPurges',
    'Those of all replicas.',
  ),
  '/purges/{id}': getPurges(
    'getPurge',
    'What has become of a purge at the CDN in front; known for a day after its end',
    'PurgeState',
    'Of this replica or another one.',
    [
      {
        name: 'id',
        in: 'path',
        required: true,
        description: 'Id that the purge was answered with.',
        schema: { type: 'string' },
      },
    ],
  ),
  '/blocks': {
    ...get({
      operationId: 'getBlocks',
      summary: 'What is blocked',
      security: withToken,
      parameters: [
        {
          ...{ name: 'kind', in: 'query', required: false },
          description: 'Kind of the block to look up; needs `value`.',
          schema: { enum: blockKinds },
        },
        {
          ...{ name: 'value', in: 'query', required: false },
          description: 'Its value, in the forms that a request to block takes.',
          schema: { type: 'string' },
        },
      ],
      responses: {
        200: json('Blocks', 'The list, or the block that was looked up, if it is there.'),
        ...listFailures,
      },
    }),
    post: changeBlocks('block', 'Blocks originals, and purges them'),
    delete: changeBlocks('release', 'Releases what is blocked'),
  },
};

/** A path that exists only with a CDN in front. */
function getPurges(
  operationId: string,
  summary: string,
  schema: string,
  description: string,
  parameters: readonly Parameter[] = [],
): PathItem {
  return get({
    operationId,
    summary,
    security: withToken,
    ...(parameters.length > 0 && { parameters }),
    responses: {
      200: json(schema, description),
      401: { $ref: '#/components/responses/Unauthorized' },
      404: json('NotFound', 'There is no such purge, or no CDN in front.'),
      500: { $ref: '#/components/responses/Failed' },
      503: { $ref: '#/components/responses/PurgesUnreadable' },
    },
  });
}

function changeBlocks(operationId: string, summary: string): Operation {
  return {
    servers: [adminServer],
    operationId,
    tags: ['admin'],
    summary,
    security: withToken,
    requestBody: {
      required: true,
      content: { 'application/json': { schema: { $ref: '#/components/schemas/BlockOrder' } } },
    },
    responses: {
      200: json('BlockGeneration', 'The list has the change; replicas follow.'),
      ...listFailures,
      413: { $ref: '#/components/responses/BadOrder' },
      415: { $ref: '#/components/responses/BadOrder' },
    },
  };
}

/** An error that only this listener has. */
function describeError(code: string): Schema {
  return {
    type: 'object',
    properties: { code: { const: code }, message: { type: 'string' } },
    required: ['code', 'message'],
    additionalProperties: false,
  };
}

/** Each operation names its server: some readers look for `servers` neither in the path nor in the document. */
function get(
  operation: Omit<Operation, 'servers' | 'tags' | 'security'> &
    Pick<Partial<Operation>, 'security'>,
): PathItem {
  return { get: { servers: [adminServer], tags: ['admin'], security: [], ...operation } };
}

/** A response in JSON, of a schema of `components`, or of one of several. */
function json(
  schema: string | readonly string[] | undefined,
  description: string,
  ...more: Parameters<typeof onlyHeaders>
): ResponseObject {
  return {
    description,
    headers: onlyHeaders('Cache-Control', 'Content-Length', ...more),
    content: {
      'application/json': {
        schema: schemaOf(schema),
      },
    },
  };
}

function schemaOf(schema: string | readonly string[] | undefined): Schema {
  if (schema === undefined) return { type: 'object' };
  if (typeof schema !== 'string') return { oneOf: schema.map(schemaOf) };
  return { $ref: `#/components/schemas/${schema}` };
}
