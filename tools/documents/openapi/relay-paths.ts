import {
  MAX_CAPABILITY_LENGTH,
  RELAY_PREFIX,
} from '../../../src/contract/signing/relay-capability.ts';
import {
  errorResponses,
  refusalStatuses,
  registeredStatuses,
  signedStatuses,
  uploadStatuses,
} from './error-responses.ts';
import { headersOf } from './headers.ts';
import type { Operation, Parameter, PathItem } from './model.ts';

const access: Pick<Operation, 'tags' | 'security'> = { tags: ['uploads'], security: [] };

const key: Parameter = {
  name: 'key',
  in: 'path',
  required: true,
  description:
    'The key of an original (`x-origin-key`), or any key in the uploads bucket: its segments, each percent-encoded, with slashes between them.',
  schema: { type: 'string' },
  example: 'attachments/1/2/cat%20picture.png',
};

const query: readonly Parameter[] = [
  {
    name: 't',
    in: 'query',
    required: true,
    description:
      'The capability: unpadded base64url of a JSON object, a dot, and unpadded base64url of the HMAC-SHA256 of that first part (docs/signing.md).',
    schema: {
      type: 'string',
      maxLength: MAX_CAPABILITY_LENGTH,
      pattern: '^[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]{43}$',
    },
  },
  {
    name: 'uploadId',
    in: 'query',
    description: 'Upload id of a part of an S3 multipart upload, as in the capability.',
    schema: { type: 'string' },
  },
  {
    name: 'partNumber',
    in: 'query',
    description: 'Number of the part, as in the capability.',
    schema: { type: 'integer', minimum: 1, maximum: 10_000 },
  },
];

/**
 * Statuses that uploads do not return: they have no preconditions and no ranges, and decode no picture. A blocked upload
 * is a 403.
 */
const notOfUploads: readonly number[] = [412, 416, 422, 429, 451];

const statuses = [...registeredStatuses, ...signedStatuses, ...uploadStatuses, ...refusalStatuses];

/** The path of uploads. */
export const relayPaths: Readonly<Record<string, PathItem>> = {
  [`${RELAY_PREFIX}{key}`]: {
    summary: 'Upload',
    parameters: [key],
    put: {
      ...access,
      operationId: 'putOriginal',
      summary: 'Stores an original, or a part of one',
      description:
        'With `Expect: 100-continue`, Darkroom rejects a request with an invalid head or capability before the client sends the body.',
      parameters: query,
      requestBody: {
        required: true,
        content: { '*/*': { schema: { type: 'string', format: 'binary' } } },
      },
      responses: {
        200: {
          description:
            "Stored. The entity tag is the storage's own, which the completion of a multipart upload needs.",
          headers: {
            ...headersOf('ETag', 'Cache-Control', 'Content-Length', 'X-Metadata'),
            'Access-Control-Expose-Headers': {
              $ref: '#/components/headers/Access-Control-Expose-Headers-Of-Uploads',
            },
          },
        },
        ...errorResponses(
          [...new Set(statuses)].filter((status) => !notOfUploads.includes(status)),
        ),
      },
    },
    options: {
      ...access,
      operationId: 'optionsOriginal',
      summary: 'Methods and headers that an upload accepts',
      responses: {
        204: { $ref: '#/components/responses/Preflight' },
        ...errorResponses([...new Set([404, ...refusalStatuses])]),
      },
    },
  },
};
