import { createServer } from 'node:http';
import { fastify } from 'fastify';
import { serve } from './serve.ts';

/*
 * What a hit could cost at best: the same buffer to everybody, with the headers of a media answer, from
 * `node:http` itself or from Fastify.
 */
const [kind, size] = process.argv.slice(2);
const body = Buffer.alloc(Number(size), 7);
const headers = {
  'content-type': 'image/webp',
  'cache-control': 'public, max-age=31536000, immutable',
  etag: '"0123456789abcdef0123456789abcdef"',
  'last-modified': new Date(0).toUTCString(),
};

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
      response.writeHead(200, { ...headers, 'content-length': body.length }).end(body);
    }),
  );
}
