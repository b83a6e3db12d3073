import { formatOfExtension, outputFormats } from '../../../src/contract/image-formats.ts';
import {
  platformResourceNames,
  type ResourceName,
  resourceNames,
  resourceRows,
} from '../../../src/contract/resources.ts';
import { REQUEST_ID } from '../../../src/http/request-state.ts';
import {
  errorResponses,
  ownStatuses,
  refusalStatuses,
  registeredStatuses,
  signedStatuses,
} from './error-responses.ts';
import { headersOf, tagHeaders } from './headers.ts';
import {
  byName,
  capitalize,
  type MediaType,
  type Operation,
  type Parameter,
  type PathItem,
  type Reference,
  type ResponseObject,
  type Server,
} from './model.ts';
import { describePathParameters, describeQueryParameters } from './parameters.ts';

/** Server of default avatars. */
const staticServer: Server = {
  url: '{static_url}',
  description: 'Static assets.',
  variables: { static_url: { default: 'http://127.0.0.1:3000' } },
};

const sharedParameters: readonly Parameter[] = [
  header(
    'X-Request-Id',
    `An id for the log. One that does not match ${REQUEST_ID.source} is replaced.`,
  ),
  header(
    'If-Match',
    'Entity tags, one of which the media must have. Takes precedence over If-Unmodified-Since.',
  ),
  header('If-Unmodified-Since', 'Date after which the media must not have changed.'),
  header(
    'If-None-Match',
    'Entity tags that the client has. Takes precedence over If-Modified-Since.',
  ),
  header('If-Modified-Since', 'Date of the body that the client has.'),
];
const rangeParameters: readonly Parameter[] = [
  header('Range', 'One range of bytes. Several ranges, and other units, are ignored.'),
  header('If-Range', 'Entity tag or date of the body of which the client has a part.'),
];

/** The signature has no parameters in the document, because a service may not require it. */
const signedAttachments =
  'If the service requires signatures, the query also has `ex` and `is`, with eight lower-case hexadecimal digits each, and `hm`, with 64 digits. For a data export, it has `ex=0` and `uc=dp`. If the signature is missing, wrong or expired, the response is the same as for a missing attachment.';

/** Raw bytes, as client generators expect them; JSON Schema has no such type. */
const binary = { type: 'string', format: 'binary' };

/** Parameters by name, for references. */
export const headerParameters: Readonly<Record<string, Parameter>> = Object.fromEntries(
  [...sharedParameters, ...rangeParameters].map((parameter) => [parameter.name, parameter]),
);

const notModifiedOfFile: ResponseObject = {
  description: 'Not modified: the client has the current body.',
  headers: headersOf('ETag', 'Last-Modified', 'Cache-Control', 'Cache-Status', 'Server-Timing'),
};

const notModifiedResponse: ResponseObject = {
  ...notModifiedOfFile,
  headers: { ...notModifiedOfFile.headers, ...headersOf('X-Robots-Tag', ...tagHeaders) },
};

/** Responses of media that are the same for all resources. */
export const mediaResponses: Readonly<Record<string, ResponseObject>> = {
  NotModified: notModifiedResponse,
  NotModifiedOfSite: {
    ...notModifiedResponse,
    headers: {
      ...notModifiedResponse.headers,
      ETag: { $ref: '#/components/headers/ETag-If-Any' },
    },
  },
  Preflight: {
    description: 'Allowed methods and headers. The values in the path are not checked.',
    headers: headersOf(
      'Allow',
      'Access-Control-Allow-Methods',
      'Access-Control-Allow-Headers',
      'Access-Control-Max-Age',
    ),
  },
};

/** Path items by resource of the contract, including resources that exist only if Darkroom replaces the platform. */
export const mediaPaths: Readonly<Record<string, PathItem>> = Object.fromEntries(
  [...resourceNames, ...platformResourceNames].map((resource) => [
    resourceRows[resource].template,
    describeResource(resource),
  ]),
);

function describeResource(resource: ResourceName): PathItem {
  const { originKey, extensions, fileExtensions, template } = resourceRows[resource];
  return {
    summary: capitalize(resource),
    ...(originKey !== undefined && { 'x-origin-key': originKey }),
    parameters: describePathParameters(template, extensions ?? fileExtensions ?? []),
    get: describeOperation(resource, 'get'),
    head: describeOperation(resource, 'head'),
    options: describePreflight(resource),
  };
}

function describeOperation(resource: ResourceName, method: 'get' | 'head'): Operation {
  const { query, isSigned } = resourceRows[resource];
  const name = nameOf(resource);
  const isGet = method === 'get';
  const errors = [
    ...(query === 'none' ? ownStatuses : registeredStatuses),
    ...(isSigned ? signedStatuses : []),
  ];
  const possible = errors.filter((status) => isGet || status !== 416);
  return {
    ...describeAccess(resource),
    operationId: operationId(method, resource),
    summary: isGet ? `Returns ${name}` : `Returns the headers of ${name}, without its body`,
    ...(resource === 'attachment' && { description: signedAttachments }),
    parameters: [
      ...describeQueryParameters(query),
      ...(isGet ? [...sharedParameters, ...rangeParameters] : sharedParameters).map(({ name }) => ({
        $ref: `#/components/parameters/${name}`,
      })),
    ],
    responses: {
      200: {
        ...(resource === 'external media' ? describeCompleteOfSite() : describeComplete(resource)),
        ...(!isGet && { description: 'The headers of the response to GET.' }),
      },
      ...(isGet && {
        206: describeSuccess(
          resource,
          'The requested range.',
          'Content-Length',
          'Accept-Ranges',
          'Content-Range',
        ),
      }),
      304: describeUnmodified(resource),
      ...errorResponses([...new Set([...possible, ...refusalStatuses])]),
    },
  };
}

/** The 304 for a default avatar has no headers for robots and CDNs, like its 200. */
function describeUnmodified(resource: ResourceName): ResponseObject | Reference {
  if (resourceRows[resource].query === 'none') return notModifiedOfFile;
  const name = resource === 'external media' ? 'NotModifiedOfSite' : 'NotModified';
  return { $ref: `#/components/responses/${name}` };
}

function describeComplete(resource: ResourceName): ResponseObject {
  return describeSuccess(resource, 'The complete body.', 'Content-Length', 'Accept-Ranges');
}

/** Media of other sites have ranges only if their site sends a strong validator. */
function describeCompleteOfSite(): ResponseObject {
  const complete = describeComplete('external media');
  const ETag = { $ref: '#/components/headers/ETag-If-Any' };
  const ranges = { $ref: '#/components/headers/Accept-Ranges-Or-None' };
  return { ...complete, headers: { ...complete.headers, ETag, 'Accept-Ranges': ranges } };
}

function describeSuccess(
  resource: ResourceName,
  description: string,
  ...more: Parameters<typeof headersOf>
): ResponseObject {
  const hasFilename = resourceRows[resource].template.endsWith('{filename}');
  return {
    description,
    headers: headersOf(
      'ETag',
      'Last-Modified',
      'Cache-Control',
      'Cache-Status',
      'Server-Timing',
      ...(hasFilename ? (['Content-Disposition'] as const) : []),
      ...(resourceRows[resource].query === 'none'
        ? []
        : (['X-Robots-Tag', ...tagHeaders] as const)),
      ...more,
    ),
    content: describeContent(resource),
  };
}

/** Describes the body: the format of the extension, or any type for an attachment. */
function describeContent(resource: ResourceName): Readonly<Record<string, MediaType>> {
  const { extensions, contentType } = resourceRows[resource];
  const types =
    contentType === undefined
      ? extensions?.map((extension) => outputFormats[formatOfExtension(extension)].mimeType)
      : contentType.split(';', 1);
  return byName([...new Set(types ?? ['*/*'])], () => ({ schema: binary }));
}

/** Media are public or have a signed URL; default avatars have their own host. */
function describeAccess(resource: ResourceName): Pick<Operation, 'servers' | 'tags' | 'security'> {
  const { query, isSigned } = resourceRows[resource];
  const servers = query === 'none' ? { servers: [staticServer] } : {};
  const isPlatformOnly = platformResourceNames.includes(resource);
  const tag = isPlatformOnly ? 'platform' : isSigned ? 'signed' : 'media';
  return { ...servers, tags: [tag], security: [] };
}

function nameOf(resource: ResourceName): string {
  if (resource === 'external media') return resource;
  if (resource === 'branding') return 'a branding image';
  return /^[aeio]/.test(resource) ? `an ${resource}` : `a ${resource}`;
}

function describePreflight(resource: ResourceName): Operation {
  return {
    ...describeAccess(resource),
    operationId: operationId('options', resource),
    summary: `Methods and headers that ${nameOf(resource)} accepts`,
    responses: {
      204: { $ref: '#/components/responses/Preflight' },
      ...errorResponses([...new Set([404, ...refusalStatuses])]),
    },
  };
}

function header(name: string, description: string): Parameter {
  return { name, in: 'header', description, schema: { type: 'string' } };
}

/** As in `getUserAvatar`. */
function operationId(method: string, resource: ResourceName): string {
  return method + resource.split(' ').map(capitalize).join('');
}
