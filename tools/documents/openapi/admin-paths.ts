import { blockKinds, describeBlockRequest } from '../../../src/contract/block-request.ts';
import { describeMetadata, metadataParameters } from '../../../src/contract/metadata.ts';
import { describePurgeRequest } from '../../../src/contract/purge-request.ts';
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
      'Darkroom sends each purge to the CDN in front twice. pending: the CDN has not accepted both yet. failed: the CDN accepted nothing for a day.',
  },
  reason: { type: 'string', description: 'Reason of the last call that the CDN rejected.' },
} as const;

/** Schemas of the admin listener. */
export const adminSchemas: Readonly<Record<string, Schema>> = {
  PurgeRequest: describePurgeRequest(),
  Purged: {
    type: 'object',
    properties: {
      removed: {
        type: 'object',
        description: 'Number of deleted renderings.',
        properties: { memory: count, store: count },
        required: ['memory', 'store'],
      },
    },
    required: ['removed'],
  },
  BlockRequest: describeBlockRequest(),
  BlockGeneration: {
    type: 'object',
    properties: {
      generation: {
        ...count,
        description: 'Number of this change of the list; it rises with each change.',
      },
    },
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
        description: 'degraded: the replica should receive requests, but cannot serve all of them.',
      },
      reasons: {
        type: 'array',
        items: { type: 'string' },
        description: 'Reasons for a status other than ready.',
      },
      version: { type: 'string', description: 'Release of the program.' },
      commit: {
        type: 'string',
        description: 'Git commit of the build, if known.',
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
    ...json('Unauthorized', 'The token is missing or wrong.'),
    headers: onlyHeaders('Cache-Control', 'Content-Length', 'WWW-Authenticate'),
  },
  BadRequest: json('InvalidFormBody', 'The body is invalid, not JSON, or too long.'),
  Failed: json('InternalError', 'The service has failed.'),
  BadParameters: json('InvalidFormBody', 'The key or a parameter is invalid.'),
  UnknownOriginal: json('UnknownMedia', 'The storage does not have the object.'),
  OriginFailed: json(
    'OriginError',
    'The storage failed, or the original was replaced during the read.',
  ),
  AtCapacity: json('Overloaded', 'The service is at its capacity.', 'Retry-After'),
  TimedOut: json(
    ['OriginTimeout', 'TransformTimeout'],
    'The storage did not respond in time, or reading the metadata exceeded the deadline of a transform.',
  ),
  PurgeNotStored: {
    ...json(
      ['Overloaded', 'JournalError'],
      'Other purges take too long: only the memory is purged, not the store. Or too many purges wait for the CDN in front, or the purge cannot be stored for it: only memory and store are purged, not the CDN.',
    ),
    headers: {
      ...onlyHeaders('Cache-Control', 'Content-Length'),
      'Retry-After': { $ref: '#/components/headers/Retry-After-If-Any' },
    },
  },
  PurgesUnreadable: json('JournalError', 'Purges for the CDN cannot be read.'),
  BlockingDisabled: json('NotFound', 'Blocking is off: BLOCKLIST is not set.'),
  ListUnavailable: json(
    'BlocklistUnavailable',
    'The list cannot be read or written; the last valid list remains in force.',
  ),
  StoreFailed: json(
    'StoreError',
    'The store of renderings failed: it is read-only, or has a symbolic link. The memory is purged, and perhaps a part of the store.',
  ),
  StoreTimedOut: json(
    'StoreTimeout',
    'The store of renderings does not respond. The memory is purged, and perhaps a part of the store.',
  ),
};

const listFailures = {
  400: { $ref: '#/components/responses/BadRequest' },
  401: { $ref: '#/components/responses/Unauthorized' },
  404: { $ref: '#/components/responses/BlockingDisabled' },
  500: { $ref: '#/components/responses/Failed' },
  503: { $ref: '#/components/responses/ListUnavailable' },
} as const;

const withToken = [{ adminToken: [] }];

/** Path items of the admin listener, by path. */
export const adminPaths: Readonly<Record<string, PathItem>> = {
  '/healthz': get({
    operationId: 'getHealth',
    summary: 'Returns 200 while the process runs',
    responses: { 200: json('Liveness', 'The process responds.') },
  }),
  '/readyz': get({
    operationId: 'getReadiness',
    summary: 'Returns whether this replica should receive requests',
    responses: {
      200: json('Readiness', 'Ready, or degraded.'),
      503: json('Readiness', 'Not ready.'),
    },
  }),
  '/openapi.json': get({
    operationId: 'getOpenapi',
    summary: 'Returns the OpenAPI document',
    responses: { 200: { ...json(undefined, 'OpenAPI 3.1.') } },
  }),
  '/metrics': get({
    operationId: 'getMetrics',
    summary: 'Returns metrics for Prometheus',
    security: withToken,
    responses: {
      200: {
        description: 'Metrics in the text exposition format 0.0.4.',
        headers: onlyHeaders('Cache-Control', 'Content-Length'),
        content: { 'text/plain': { schema: { type: 'string' } } },
      },
      401: { $ref: '#/components/responses/Unauthorized' },
      500: { $ref: '#/components/responses/Failed' },
    },
  }),
  '/metadata/{key}': get({
    operationId: 'getMetadata',
    summary: 'Returns metadata of an original, computed once per version of the original',
    security: withToken,
    parameters: [
      {
        name: 'key',
        in: 'path',
        required: true,
        description:
          'Key of the original (x-origin-key), with each segment percent-encoded, but not the slashes. A hash may begin with a_.',
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
      200: json('MediaMetadata', 'All fields; null if not applicable or unknown.', 'X-Metadata'),
      400: { $ref: '#/components/responses/BadParameters' },
      401: { $ref: '#/components/responses/Unauthorized' },
      404: { $ref: '#/components/responses/UnknownOriginal' },
      500: { $ref: '#/components/responses/Failed' },
      502: { $ref: '#/components/responses/OriginFailed' },
      503: { $ref: '#/components/responses/AtCapacity' },
      504: { $ref: '#/components/responses/TimedOut' },
    },
  }),
  '/purge': {
    post: {
      servers: [adminServer],
      operationId: 'purge',
      tags: ['admin'],
      summary: 'Deletes renderings, so that the next requests read their originals again',
      security: withToken,
      requestBody: {
        required: true,
        content: { 'application/json': { schema: { $ref: '#/components/schemas/PurgeRequest' } } },
      },
      responses: {
        200: json('Purged', 'The renderings are deleted.'),
        202: json(
          'PurgeAtEdge',
          'With a CDN in front (EDGE), instead of 200: the renderings are deleted here, and the purge is queued for the CDN.',
        ),
        400: { $ref: '#/components/responses/BadRequest' },
        401: { $ref: '#/components/responses/Unauthorized' },
        413: { $ref: '#/components/responses/BadRequest' },
        415: { $ref: '#/components/responses/BadRequest' },
        500: { $ref: '#/components/responses/Failed' },
        502: { $ref: '#/components/responses/StoreFailed' },
        503: { $ref: '#/components/responses/PurgeNotStored' },
        504: { $ref: '#/components/responses/StoreTimedOut' },
      },
    },
  },
  '/purges': getPurges(
    'getPurges',
    'Returns the pending purges of the CDN in front',
    'PendingPurges',
    'Pending purges of all replicas.',
  ),
  '/purges/{id}': getPurges(
    'getPurge',
    'Returns the state of a purge at the CDN in front, until a day after the purge has ended',
    'PurgeState',
    'State of a purge of any replica.',
    [
      {
        name: 'id',
        in: 'path',
        required: true,
        description: 'Id in the response to the purge.',
        schema: { type: 'string' },
      },
    ],
  ),
  '/blocks': {
    ...get({
      operationId: 'getBlocks',
      summary: 'Returns the blocks',
      security: withToken,
      parameters: [
        {
          ...{ name: 'kind', in: 'query', required: false },
          description: 'Kind of the block to look up; needs `value`.',
          schema: { enum: blockKinds },
        },
        {
          ...{ name: 'value', in: 'query', required: false },
          description: 'Value of the block to look up, as in a request to block.',
          schema: { type: 'string' },
        },
      ],
      responses: {
        200: json('Blocks', 'The list, or the requested block if it exists.'),
        ...listFailures,
      },
    }),
    post: changeBlocks('block', 'Blocks originals and purges them'),
    delete: changeBlocks('release', 'Removes blocks'),
  },
};

/** Describes a path that exists only with a CDN in front of the service. */
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
      404: json('NotFound', 'The purge is unknown, or EDGE is not set.'),
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
      content: { 'application/json': { schema: { $ref: '#/components/schemas/BlockRequest' } } },
    },
    responses: {
      200: json('BlockGeneration', 'The list is changed; other replicas follow.'),
      ...listFailures,
      413: { $ref: '#/components/responses/BadRequest' },
      415: { $ref: '#/components/responses/BadRequest' },
    },
  };
}

/** Describes an error that only this listener returns. */
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

/** Describes a JSON response with one of these schemas of `components`. */
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
