import { adminAnswers, adminPaths, adminSchemas } from './admin-paths.ts';
import { errorAnswerComponents, errorSchemas } from './error-answers.ts';
import { headerComponents } from './headers.ts';
import { headerParameters, mediaAnswers, mediaPaths } from './media-paths.ts';
import type { OpenapiDocument } from './model.ts';
import { pathValueSchemas } from './path-parameters.ts';

/** Of the HTTP API, not of the program: raised by hand where a client would notice. */
const API_VERSION = '1.0.0';

const DESCRIPTION = `Media of an instant-messaging platform: what a URL names, in the size and format it asks for.

- The same URL gives the same bytes. Media may be kept for ever.
- GET, HEAD and OPTIONS are answered; any other method is a 405 with \`Allow\`, or a 404 where the path is none.
- A wrong value, or a parameter given twice, is a 400 that tells all faults. Parameters that are not listed are ignored.
- An id that is a word of one of the paths (\`/avatars/avatars/3.png\`) is no id gone wrong but a path that does not exist: 404.
- Keys of originals (\`x-origin-key\`) have a hash without its leading \`a_\`.`;

/** The HTTP API as an OpenAPI 3.1 document, from the tables that route and the schemas that parse. */
export function createOpenapiDocument(): OpenapiDocument {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Darkroom',
      version: API_VERSION,
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
      { name: 'admin', description: 'For those who run the service, on a listener of its own.' },
    ],
    paths: { ...mediaPaths, ...adminPaths },
    components: {
      headers: headerComponents,
      parameters: headerParameters,
      responses: { ...mediaAnswers, ...errorAnswerComponents, ...adminAnswers },
      schemas: { ...pathValueSchemas, ...errorSchemas, ...adminSchemas },
      securitySchemes: {
        adminToken: { type: 'http', scheme: 'bearer', description: 'ADMIN_TOKEN' },
      },
    },
  };
}
