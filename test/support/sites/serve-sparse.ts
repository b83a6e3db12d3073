import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { sparseSource } from '../videos.ts';

/** A file that a site serves, with statistics. */
export interface ServedFile {
  /** Tests replace it for a new version. */
  source: ReturnType<typeof sparseSource>;
  headers: Readonly<Record<string, string>>;
  readonly hasRanges: boolean;
  /** Whether the site declares the length of a complete file. */
  readonly hasLength: boolean;
  /** Served ranges in order; `whole` for the complete file. */
  readonly served: string[];
  /** Number of body bytes written to connections. */
  sentBytes: number;
}

const CHUNK_BYTES = 64 * 1024;

/** Streams a large file with backpressure, with or without ranges and conditions. */
export function serveSparse(file: ServedFile) {
  return (request: IncomingMessage, response: ServerResponse): void => {
    const { source, headers, hasRanges, hasLength } = file;
    const { sizeBytes } = source;
    const conditions = request.headers;
    if (conditions['if-none-match'] !== undefined && conditions['if-none-match'] === headers.etag) {
      file.served.push('304');
      response.writeHead(304, headers).end();
      return;
    }
    const condition = conditions['if-range'];
    const applies = [undefined, headers.etag, headers['last-modified']].some(
      (validator) => validator === condition,
    );
    const [, from = '', to = ''] = /^bytes=(\d+)-(\d*)$/.exec(conditions.range ?? '') ?? [];
    const isPart = hasRanges && from !== '' && applies;
    const first = isPart ? Number(from) : 0;
    const end = Math.min(isPart && to !== '' ? Number(to) + 1 : sizeBytes, sizeBytes);
    if (isPart && first >= sizeBytes) {
      response.writeHead(416, { 'content-range': `bytes */${sizeBytes}` }).end();
      return;
    }
    file.served.push(isPart ? `${first}-${end - 1}` : 'whole');
    if (isPart) {
      const range = `bytes ${first}-${end - 1}/${sizeBytes}`;
      response.writeHead(206, {
        ...headers,
        'content-length': end - first,
        'content-range': range,
      });
    } else {
      response.writeHead(200, { ...headers, ...(hasLength && { 'content-length': sizeBytes }) });
    }
    const chunks = async function* () {
      for (let at = first; at < end; at += CHUNK_BYTES) {
        const chunk = await source.read(at, Math.min(at + CHUNK_BYTES, end));
        file.sentBytes += chunk.length;
        yield chunk;
      }
    };
    pipeline(Readable.from(chunks(), { highWaterMark: 1 }), response).catch(() => undefined);
  };
}
