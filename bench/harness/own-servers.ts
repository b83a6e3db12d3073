import { createReadStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { type OutputFormat, outputFormats } from '../../src/contract/image-formats.ts';

/* Entry point: runs one of these servers, by name and options, on the port that `startServer` sets. */
const [name = '', ...options] = process.argv.slice(2);

/** Servers by name. Each loads only its own libraries, because memory is measured. */
const servers: Readonly<Record<string, (...options: string[]) => Promise<Server>>> = {
  fastify: serveByFastify,
  directory: async (directory, delayMs) =>
    createServer((request, response) => {
      sendFile(request, response, directory, Number(delayMs)).catch(() => response.destroy());
    }),
  'raw-sharp': serveBySharp,
  ipx: serveByIpx,
};

/** Minimum cost of a hit with Fastify: every response is the same buffer, with these headers (JSON). */
async function serveByFastify(bytes: string, headers: string): Promise<Server> {
  const { fastify } = await import('fastify');
  const body = Buffer.alloc(Number(bytes), 7);
  const fields = JSON.parse(headers) as Record<string, string>;
  const app = fastify({ logger: false });
  app.get('/*', async (_request, reply) => reply.headers(fields).send(body));
  await app.ready();
  return app.server;
}

/**
 * Sends a file of a directory after a delay. Implements only the part of S3 that readers need: GET and HEAD of
 * `/{bucket}/{key}`, ranges, ETag, If-None-Match and date, without credentials.
 */
async function sendFile(
  request: IncomingMessage,
  response: ServerResponse,
  directory = '.',
  delayMs = 0,
): Promise<void> {
  const { pathname } = new URL(request.url ?? '/', 'http://bucket');
  const key = decodeURIComponent(pathname.slice(pathname.indexOf('/', 1) + 1));
  const file = join(directory, key);
  if (delayMs > 0) await sleep(delayMs);
  const found = await stat(file).catch(() => undefined);
  if (found === undefined) {
    response.writeHead(404).end('<Error><Code>NoSuchKey</Code></Error>');
    return;
  }
  const etag = `"${found.ino}-${found.size}-${found.mtimeMs}"`;
  if (request.headers['if-none-match'] === etag) {
    response.writeHead(304, { etag }).end();
    return;
  }
  const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '');
  const start = Number(range?.[1] ?? 0);
  const end = Math.min(Number(range?.[2] || found.size - 1), found.size - 1);
  response.writeHead(range === null ? 200 : 206, {
    'content-type': 'application/octet-stream',
    'content-length': Math.max(0, end - start + 1),
    'accept-ranges': 'bytes',
    etag,
    'last-modified': found.mtime.toUTCString(),
    ...(range !== null && { 'content-range': `bytes ${start}-${end}/${found.size}` }),
  });
  if (request.method === 'HEAD' || found.size === 0) response.end();
  else await pipeline(createReadStream(file, { start, end }), response);
}

/**
 * Upper bound: sharp in the server's own process, with Darkroom's encoder settings and its decoding of JPEG, but
 * without rules, limits or caches. Paths are `/{width}/{format}/{still|animated}/{path of the original}`.
 */
async function serveBySharp(directory: string): Promise<Server> {
  const { default: sharp } = await import('sharp');
  sharp.concurrency(1);
  sharp.cache(false);
  return createServer(async (request, response) => {
    const [, width, name, motion, ...path] = (request.url ?? '').split('/');
    const { mimeType, qualities } = outputFormats[name as OutputFormat];
    const original = await readFile(join(directory, ...path));
    const isJpeg = original[0] === 0xff;
    const body = await sharp(original, { animated: motion === 'animated', failOn: 'warning' })
      .autoOrient()
      .resize({ width: Number(width), fastShrinkOnLoad: isJpeg && name !== 'png' })
      .toColourspace('srgb')
      .toFormat(name as OutputFormat, qualities.high)
      .toBuffer();
    response.writeHead(200, { 'content-type': mimeType, 'content-length': body.length }).end(body);
  });
}

/** IPX with its own server and its defaults; paths are `/{modifiers}/{path of the original}`. */
async function serveByIpx(dir: string): Promise<Server> {
  const { createIPX, createIPXNodeServer, ipxFSStorage } = await import('ipx');
  return createServer(createIPXNodeServer(createIPX({ storage: ipxFSStorage({ dir }) })));
}

const server = await servers[name]?.(...options);
server?.listen(Number(process.env.PORT), process.env.HOST);
process.on('SIGTERM', () => process.exit());
