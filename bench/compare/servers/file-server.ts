import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { announce } from './announce.ts';

/* Reading the origin directly: files of a folder, streamed as Node does it by itself, and nothing else. */
const [folder = '.'] = process.argv.slice(2);
announce(
  createServer(async (request, response) => {
    const file = join(folder, request.url ?? '');
    const { size } = await stat(file);
    response.writeHead(200, { 'content-type': 'video/mp4', 'content-length': size });
    await pipeline(createReadStream(file), response).catch(() => response.destroy());
  }),
);
