import { formatOfExtension, outputFormats } from '../../contract/image-formats.ts';
import { type ResourceName, resourceRows } from '../../contract/resources.ts';
import { REQUEST_ID_FORM } from '../request-id.ts';
import { doorStatuses, errorAnswers, ownStatuses, registeredStatuses } from './error-answers.ts';
import { headersOf, headersWithIdIfAny } from './headers.ts';
import {
  type Answer,
  byName,
  type MediaType,
  type Operation,
  type Parameter,
  type PathItem,
  type Server,
} from './model.ts';
import { describePathParameters } from './path-parameters.ts';
import { describeQueryParameters } from './query-parameters.ts';

/** Where default avatars are served. */
const staticServer: Server = {
  url: '{static_url}',
  description: 'Static assets.',
  variables: { static_url: { default: 'http://127.0.0.1:3000' } },
};

const conditions: readonly Parameter[] = [
  {
    ...header('X-Request-Id', 'An id for the log; one of another form is replaced by a new one.'),
    schema: { type: 'string', pattern: REQUEST_ID_FORM.source },
  },
  header('If-None-Match', 'Entity tags that the client has. Wins over If-Modified-Since.'),
  header('If-Modified-Since', 'The date of what the client has.'),
];
const ranges: readonly Parameter[] = [
  header('Range', 'One range of bytes. Several, or anything else, is answered with the whole.'),
  header('If-Range', 'Entity tag or date of what the client has a part of.'),
];

/** Parameters by name, for references. */
export const headerParameters: Readonly<Record<string, Parameter>> = Object.fromEntries(
  [...conditions, ...ranges].map((parameter) => [parameter.name, parameter]),
);

/** Answers of media that are the same for all resources. */
export const mediaAnswers: Readonly<Record<string, Answer>> = {
  NotModified: {
    description: 'What the client has is current.',
    headers: headersWithIdIfAny(
      'ETag',
      'Last-Modified',
      'Cache-Control',
      'Cache-Status',
      'Server-Timing',
    ),
  },
  Preflight: {
    description: 'Whatever the values in the path are.',
    headers: headersOf(
      'Allow',
      'Access-Control-Allow-Methods',
      'Access-Control-Allow-Headers',
      'Access-Control-Max-Age',
    ),
  },
};

/** A path item per resource of the contract. */
export const mediaPaths: Readonly<Record<string, PathItem>> = Object.fromEntries(
  (Object.keys(resourceRows) as ResourceName[]).map((resource) => [
    resourceRows[resource].template,
    describeResource(resource),
  ]),
);

function describeResource(resource: ResourceName): PathItem {
  const { originKey, extensions, template } = resourceRows[resource];
  return {
    summary: resource.slice(0, 1).toUpperCase() + resource.slice(1),
    ...(originKey === undefined && { servers: [staticServer] }),
    ...(originKey !== undefined && { 'x-origin-key': originKey }),
    parameters: describePathParameters(template, extensions ?? []),
    get: describeOperation(resource, 'get'),
    head: describeOperation(resource, 'head'),
    options: describePreflight(resource),
  };
}

function describeOperation(resource: ResourceName, method: 'get' | 'head'): Operation {
  const { query, originKey } = resourceRows[resource];
  const isGet = method === 'get';
  const errors = originKey === undefined ? ownStatuses : registeredStatuses;
  const possible = errors.filter((status) => isGet || status !== 416);
  return {
    operationId: operationId(method, resource),
    tags: ['media'],
    summary: isGet ? `Serves a ${resource}` : `The headers of a ${resource}, as of a GET`,
    parameters: [
      ...describeQueryParameters(query),
      ...(isGet ? [...conditions, ...ranges] : conditions).map(({ name }) => ({
        $ref: `#/components/parameters/${name}`,
      })),
    ],
    responses: {
      200: describeSuccess(resource, 'The whole.', 'Content-Length', 'Accept-Ranges'),
      ...(isGet && {
        206: describeSuccess(
          resource,
          'The range that was asked for.',
          'Content-Length',
          'Accept-Ranges',
          'Content-Range',
        ),
      }),
      304: { $ref: '#/components/responses/NotModified' },
      ...errorAnswers([...new Set([...possible, ...doorStatuses])]),
    },
  };
}

function describeSuccess(
  resource: ResourceName,
  description: string,
  ...more: Parameters<typeof headersOf>
): Answer {
  const { query } = resourceRows[resource];
  return {
    description,
    headers: headersWithIdIfAny(
      'ETag',
      'Last-Modified',
      'Cache-Control',
      'Cache-Status',
      'Server-Timing',
      ...(query === 'external' ? (['Content-Disposition'] as const) : []),
      ...more,
    ),
    content: describeContent(resource),
  };
}

/** Bytes: of the format that the extension names, or of whatever an attachment is. */
function describeContent(resource: ResourceName): Readonly<Record<string, MediaType>> {
  const { extensions } = resourceRows[resource];
  const types = extensions?.map(
    (extension) => outputFormats[formatOfExtension(extension)].mimeType,
  );
  return byName([...new Set(types ?? ['*/*'])], () => ({}));
}

function describePreflight(resource: ResourceName): Operation {
  return {
    operationId: operationId('options', resource),
    tags: ['media'],
    summary: `What may be asked of a ${resource}`,
    responses: {
      204: { $ref: '#/components/responses/Preflight' },
      ...errorAnswers([...new Set([404, ...doorStatuses])]),
    },
  };
}

function header(name: string, description: string): Parameter {
  return { name, in: 'header', description, schema: { type: 'string' } };
}

/** As in `getUserAvatar`. */
function operationId(method: string, resource: ResourceName): string {
  const words = resource.split(' ').map((word) => word.slice(0, 1).toUpperCase() + word.slice(1));
  return method + words.join('');
}
