import { readFile } from 'node:fs/promises';
import type { FastifyInstance } from 'fastify';

/** Where the document is served; it tells nothing that the source does not. */
export const OPENAPI_PATH = '/openapi.json';

/** The build's copy of `docs/openapi.json`, as seen from `src` and from `dist` alike. */
const documentFile = new URL('../../../dist/openapi.json', import.meta.url);

/** Serves the OpenAPI document, which is read when it is first asked for. */
export function registerOpenapi(server: FastifyInstance): void {
  let text: string | undefined;
  server.get(OPENAPI_PATH, async (_request, reply) => {
    text ??= await readFile(documentFile, 'utf8');
    return reply.type('application/json; charset=utf-8').send(text);
  });
}
