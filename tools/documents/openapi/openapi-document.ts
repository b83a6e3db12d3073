import { readFileSync } from 'node:fs';
import { adminPaths, adminResponses, adminSchemas } from './admin-paths.ts';
import { errorResponseComponents, errorSchemas } from './error-responses.ts';
import { headerComponents } from './headers.ts';
import { internalPaths, internalSchemas } from './internal-paths.ts';
import { headerParameters, mediaPaths, mediaResponses } from './media-paths.ts';
import type { OpenapiDocument } from './model.ts';
import { pathValueSchemas } from './parameters.ts';
import { relayPaths } from './relay-paths.ts';

const DESCRIPTION = `Media of an instant-messaging platform, in the size and format that the URL requests.

- The same URL returns the same bytes. Clients may cache media for ever.
- GET, HEAD and OPTIONS are allowed, for uploads PUT and OPTIONS. Any other method is a 405 with \`Allow\`, or a 404 if the path is unknown.
- An invalid value, or a repeated parameter, is a 400 that lists all faults. Unknown parameters are ignored. If \`COMPATIBILITY\` is \`fluxer\`, requests are parsed leniently: section 14 of docs/contract.md.
- An id that is a literal segment of one of the paths (\`/avatars/avatars/3.png\`) is a 404, not a 400: the path is unknown.
- Hashes in keys of originals (\`x-origin-key\`) have no leading \`a_\`.
- The examples of media exist among the sample originals that \`npm start\` serves.`;

/**
 * Describes the HTTP API as an OpenAPI 3.1 document, from the service's routing tables and schemas, and the version in
 * `package.json` of the working directory.
 */
export function createOpenapiDocument(): OpenapiDocument {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as {
    readonly version: string;
  };
  return {
    openapi: '3.1.0',
    info: {
      title: 'Darkroom',
      version,
      description: DESCRIPTION,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [
      {
        url: '{cdn_url}',
        description: 'User content, behind a caching proxy.',
        variables: { cdn_url: { default: 'http://127.0.0.1:3000' } },
      },
    ],
    tags: [
      { name: 'media', description: 'Public: no authentication.' },
      {
        name: 'signed',
        description:
          'For clients with a signed URL. Without `EXTERNAL_SIGNING_KEYS`, these paths are a 404.',
      },
      {
        name: 'platform',
        description:
          'Media of the chat platform Fluxer, without authentication. Unless `COMPATIBILITY` is `fluxer`, these paths are a 404.',
      },
      {
        name: 'uploads',
        description:
          'For clients with a capability. Without `RELAY_SIGNING_KEYS`, these paths are a 404.',
      },
      {
        name: 'admin',
        description:
          'For operators, on the admin listener. Paths that can return a 401 need `ADMIN_TOKEN` as bearer token.',
      },
      {
        name: 'internal',
        description:
          "For the platform's API, on the internal listener, which needs `INTERNAL_PORT`. All paths except `/_health` need `INTERNAL_TOKEN` as bearer token.",
      },
    ],
    paths: { ...mediaPaths, ...relayPaths, ...adminPaths, ...internalPaths },
    components: {
      headers: headerComponents,
      parameters: headerParameters,
      responses: { ...mediaResponses, ...errorResponseComponents, ...adminResponses },
      schemas: { ...pathValueSchemas, ...errorSchemas, ...adminSchemas, ...internalSchemas },
      securitySchemes: {
        adminToken: { type: 'http', scheme: 'bearer', description: 'ADMIN_TOKEN' },
        internalToken: { type: 'http', scheme: 'bearer', description: 'INTERNAL_TOKEN' },
      },
    },
  };
}
