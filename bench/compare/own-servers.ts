import { spawn } from 'node:child_process';
import { createReadStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { type OutputFormat, outputFormats } from '../../src/contract/image-formats.ts';
import { type Frame, FrameReader, formatFrame, writeFrame } from '../../src/workers/frames.ts';
import type { Rendering } from './originals.ts';

/* Entry: runs one of these servers, by its name and options, on the port that `startServer` sets. */
const [name = '', ...options] = process.argv.slice(2);

/** Servers by name. Each loads its libraries itself, since memory is measured. */
const servers: Readonly<Record<string, (...options: string[]) => Promise<Server | undefined>>> = {
  fastify: serveByFastify,
  'node-http': serveByNode,
  folder: async (folder, delayMs) =>
    createServer((request, response) => {
      sendFile(request, response, folder, Number(delayMs)).catch(() => response.destroy());
    }),
  'raw-sharp': (folder) => serveBySharp(folder),
  'raw-sharp-apart': serveBySharpApart,
  'sharp-worker': workBySharp,
  ipx: serveByIpx,
};

/** Least cost of a hit: sends the same buffer to everybody, with these headers (JSON). */
async function serveByNode(bytes: string, headers: string): Promise<Server> {
  const { body, fields } = parseHit(bytes, headers);
  return createServer((_request, response) => {
    response.writeHead(200, fields).end(body);
  });
}

/** Sends the same through Fastify. */
async function serveByFastify(bytes: string, headers: string): Promise<Server> {
  const { fastify } = await import('fastify');
  const { body, fields } = parseHit(bytes, headers);
  const app = fastify({ logger: false });
  app.get('/*', async (_request, reply) => reply.headers(fields).send(body));
  await app.ready();
  return app.server;
}

function parseHit(bytes: string, headers: string) {
  const fields = JSON.parse(headers) as Record<string, string>;
  return { body: Buffer.alloc(Number(bytes), 7), fields };
}

/**
 * Sends a file of a folder after a delay, and as much of S3 as readers need: GET and HEAD of `/{bucket}/{key}`, ranges,
 * ETag, If-None-Match and date, without credentials.
 */
async function sendFile(
  request: IncomingMessage,
  response: ServerResponse,
  folder = '.',
  delayMs = 0,
): Promise<void> {
  const { pathname } = new URL(request.url ?? '/', 'http://bucket');
  const key = decodeURIComponent(pathname.slice(pathname.indexOf('/', 1) + 1));
  const file = join(folder, key);
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
 * Ceiling: sharp in the process that serves, with Darkroom's encoder settings and its decoding of JPEG, but without
 * rules, limits or caches. Paths are `/{width}/{format}/{still|animated}/{shrunk|whole}/{path of the original}`.
 */
async function serveBySharp(folder: string, render: RawRender = renderBySharp): Promise<Server> {
  return createServer(async (request, response) => {
    const [, width, name, motion, decoding, ...path] = (request.url ?? '').split('/');
    const format = name as OutputFormat;
    const isAnimated = motion === 'animated';
    const job = {
      widthPx: Number(width),
      format,
      isAnimated,
      shrinksOnLoad: decoding === 'shrunk',
    };
    const body = await render(await readFile(join(folder, ...path)), job);
    const { mimeType } = outputFormats[format];
    response.writeHead(200, { 'content-type': mimeType, 'content-length': body.length }).end(body);
  });
}

type RawJob = Pick<Rendering, 'widthPx' | 'format' | 'isAnimated' | 'shrinksOnLoad'>;
type RawRender = (original: Uint8Array, job: RawJob) => Promise<Uint8Array>;

const renderBySharp: RawRender = async (original, { widthPx: width, format, ...job }) => {
  const { default: sharp } = await import('sharp');
  sharp.concurrency(1);
  sharp.cache(false);
  return sharp(original, { animated: job.isAnimated, failOn: 'warning' })
    .autoOrient()
    .resize({ width, fastShrinkOnLoad: job.shrinksOnLoad })
    .toColourspace('srgb')
    .toFormat(format, outputFormats[format].qualities.high)
    .toBuffer();
};

/** Ceiling of all servers that keep decoders apart: the same sharp, in a process for each core. */
async function serveBySharpApart(folder: string): Promise<Server> {
  const free = Array.from({ length: availableParallelism() }, () => startSharpWorker());
  const waiting: ((worker: RawRender) => void)[] = [];
  return serveBySharp(folder, async (original, job) => {
    const worker = free.pop() ?? (await new Promise<RawRender>((take) => waiting.push(take)));
    const body = await worker(original, job);
    const next = waiting.shift();
    if (next === undefined) free.push(worker);
    else next(worker);
    return body;
  });
}

function startSharpWorker(): RawRender {
  const { argv, execPath } = process;
  const child = spawn(execPath, [argv[1] ?? '', 'sharp-worker'], {
    stdio: ['ignore', 'ignore', 'inherit', 'pipe'],
  });
  const channel = child.stdio[3] as Socket;
  let finish = (_body: Uint8Array): void => undefined;
  readFrames(channel, ({ body = new Uint8Array() }) => finish(body));
  return (original, job) =>
    new Promise((resolve) => {
      finish = resolve;
      writeFrame(channel, formatFrame(job, original));
    });
}

async function workBySharp(): Promise<undefined> {
  const channel = new Socket({ fd: 3 });
  channel.on('close', () => process.exit());
  readFrames(channel, ({ header, body = new Uint8Array() }) => {
    const rendering = renderBySharp(body, header as RawJob);
    void rendering.then((picture) => writeFrame(channel, formatFrame({}, picture)));
  });
}

function readFrames(channel: Socket, use: (frame: Frame) => void): void {
  const frames = new FrameReader({ maxHeaderBytes: Infinity, maxBodyBytes: () => Infinity });
  channel.on('data', (chunk: Buffer) => {
    for (const frame of frames.read(chunk)) use(frame);
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
