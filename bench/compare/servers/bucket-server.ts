import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { serve } from './serve.ts';

/*
 * A bucket that is so many milliseconds away: the objects of a folder, after so long. As much of S3 as is needed to
 * read from it: GET and HEAD of `/{bucket}/{key}`, ranges, ETag and date; anybody may.
 */
const [folder = '.', delay = '0'] = process.argv.slice(2);
const delayMs = Number(delay);
const NO_SUCH_KEY = '<?xml version="1.0" encoding="UTF-8"?><Error><Code>NoSuchKey</Code></Error>';

async function send(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname } = new URL(request.url ?? '/', 'http://bucket');
  const key = decodeURIComponent(pathname.slice(pathname.indexOf('/', 1) + 1));
  const file = join(folder, key);
  if (delayMs > 0) await sleep(delayMs);
  const found = await stat(file).catch(() => undefined);
  if (found === undefined) {
    response.writeHead(404, { 'content-type': 'application/xml' }).end(NO_SUCH_KEY);
    return;
  }
  const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '');
  const start = Number(range?.[1] ?? 0);
  const end = Math.min(Number(range?.[2] || found.size - 1), found.size - 1);
  response.writeHead(range === null ? 200 : 206, {
    'content-type': 'application/octet-stream',
    'content-length': end - start + 1,
    'accept-ranges': 'bytes',
    etag: `"${createHash('md5').update(`${key} ${found.size} ${found.mtimeMs}`).digest('hex')}"`,
    'last-modified': found.mtime.toUTCString(),
    ...(range !== null && { 'content-range': `bytes ${start}-${end}/${found.size}` }),
  });
  if (request.method === 'HEAD') response.end();
  else await pipeline(createReadStream(file, { start, end }), response);
}

serve(
  createServer((request, response) => {
    send(request, response).catch(() => response.destroy());
  }),
);
