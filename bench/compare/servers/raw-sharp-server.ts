import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import sharp from 'sharp';
import { type OutputFormat, outputFormats } from '../../../src/contract/image-formats.ts';
import { serve } from './serve.ts';

/*
 * The ceiling: sharp in the process that serves, with Darkroom's encoder settings and its decoding of JPEG, and nothing
 * else: no rules, no limits, no cache, no orientation but EXIF's.
 * `/{width}/{format}/{still|animated}/{shrunk|whole}/{path of the original}`.
 */
const [folder = '.'] = process.argv.slice(2);
sharp.concurrency(1);
sharp.cache(false);

const server = createServer(async (request, response) => {
  const [, width, name, motion, decoding, ...path] = (request.url ?? '').split('/');
  const format = name as OutputFormat;
  const bytes = await readFile(join(folder, ...path));
  const body = await sharp(bytes, { animated: motion === 'animated', failOn: 'warning' })
    .autoOrient()
    .resize({ width: Number(width), fastShrinkOnLoad: decoding === 'shrunk' })
    .toColourspace('srgb')
    .toFormat(format, outputFormats[format].qualities.high)
    .toBuffer();
  const { mimeType } = outputFormats[format];
  response.writeHead(200, { 'content-type': mimeType, 'content-length': body.length }).end(body);
});
serve(server);
