import { createServer } from 'node:http';
import { fastify } from 'fastify';
import { serve } from './serve.ts';

/*
 * What a hit could cost at best: the same buffer to everybody, with these headers (JSON), from `node:http` itself or
 * from Fastify.
 */
const [kind, size, fields = '{}'] = process.argv.slice(2);
const body = Buffer.alloc(Number(size), 7);
const headers = JSON.parse(fields) as Record<string, string>;

if (kind === 'fastify') {
  const app = fastify({ logger: false });
  app.get('/*', async (_request, reply) => {
    reply.headers(headers);
    return reply.send(body);
  });
  await app.ready();
  serve(app.server);
} else {
  serve(
    createServer((_request, response) => {
      response.writeHead(200, headers).end(body);
    }),
  );
}
