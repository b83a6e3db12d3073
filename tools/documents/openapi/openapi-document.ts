import { readFileSync } from 'node:fs';
import { adminPaths, adminResponses, adminSchemas } from './admin-paths.ts';
import { errorResponseComponents, errorSchemas } from './error-responses.ts';
import { headerComponents } from './headers.ts';
import { internalPaths, internalSchemas } from './internal-paths.ts';
import { headerParameters, mediaPaths, mediaResponses } from './media-paths.ts';
import type { OpenapiDocument } from './model.ts';
import { pathValueSchemas } from './parameters.ts';
import { relayPaths } from './relay-paths.ts';

const DESCRIPTION = `Media of an instant-messaging platform: what a URL names, in the size and format it asks for.

- The same URL gives the same bytes. Media may be kept for ever.
- GET, HEAD and OPTIONS are allowed, of uploads PUT and OPTIONS; any other method is a 405 with \`Allow\`, or a 404 where the path is none.
- A wrong value, or a parameter given twice, is a 400 that lists all faults. Parameters that are not listed are ignored. Where \`COMPATIBILITY\` is \`fluxer\`, requests are read more leniently: section 14 of docs/contract.md.
- An id that is a word of one of the paths (\`/avatars/avatars/3.png\`) is not a wrong id but a path that does not exist: 404.
- Keys of originals (\`x-origin-key\`) have a hash without its leading \`a_\`.
- The examples of media exist among the sample originals that \`npm start\` serves.`;

/**
 * Describes the HTTP API as an OpenAPI 3.1 document, from the tables that route and the schemas that parse, and from
 * the version in `package.json` of the working folder.
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
      { name: 'media', description: 'For everybody; no authentication.' },
      {
        name: 'signed',
        description: 'For those who were given a signed URL; a 404 where no signing key is set.',
      },
      {
        name: 'platform',
        description: 'For everybody, where `COMPATIBILITY` is `fluxer`; a 404 elsewhere.',
      },
      {
        name: 'uploads',
        description:
          'For those who were given a capability; a 404 where no signing key of uploads is set.',
      },
      { name: 'admin', description: 'For those who run the service, on a listener of its own.' },
      {
        name: 'internal',
        description:
          "For the platform's API, on a listener of its own; there is none without a port.",
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
