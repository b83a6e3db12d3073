import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { serve } from './serve.ts';

/* The files of a folder, as they are. */
const [folder = '.'] = process.argv.slice(2);

serve(
  createServer(async (request, response) => {
    const file = join(folder, new URL(request.url ?? '', 'http://folder').pathname);
    try {
      response.writeHead(200, { 'content-length': (await stat(file)).size });
      await pipeline(createReadStream(file), response);
    } catch {
      response.destroy();
    }
  }),
);
