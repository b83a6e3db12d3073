import type { FastifyInstance } from 'fastify';
import { createOpenapiDocument } from '../openapi/openapi-document.ts';

/** Where the document is served; it tells nothing that the source does not. */
export const OPENAPI_PATH = '/openapi.json';

/** Serves the OpenAPI document, which is made when somebody first asks for it. */
export function registerOpenapi(server: FastifyInstance): void {
  let text: string | undefined;
  server.get(OPENAPI_PATH, async (_request, reply) => {
    text ??= formatOpenapi();
    return reply.type('application/json; charset=utf-8').send(text);
  });
}

/** The document as it is served and committed. */
export function formatOpenapi(): string {
  return `${JSON.stringify(createOpenapiDocument(), undefined, 2)}\n`;
}
