import { pipeline } from 'node:stream/promises';
import { readConfig } from '../config/config.ts';
import { readImageHeader } from '../formats/containers.ts';
import {
  type Command,
  CommandError,
  createPlainLog,
  exitStatus,
  formatByteSize,
  usageError,
  writeLine,
} from './command.ts';
import { formatErrorResponse, withOfflineApp } from './offline-app.ts';
import { writeOutputFile } from './output-file.ts';

/** Maximum size of a response whose dimensions are shown: reading them needs it in memory. */
const MAX_MEASURED_BYTES = 64 * 1024 * 1024;

export const renderCommand: Command = {
  summary: 'renders one URL to a file, without a server',
  operands: ['URL-PATH', 'OUTPUT-FILE'],
  help: `
Writes the bytes that the service would send, with the same storage and
limits, and prints status, type, dimensions and size. URL-PATH is path and
query of a URL; scheme and host are ignored. Quote it: shells interpret ? and
&. OUTPUT-FILE is replaced when the rendering is complete; - is standard
output. After an error, which is
that of the API, nothing is written.

  darkroom render '/avatars/1/ab12.webp?size=256' avatar.webp
  darkroom render '/emojis/1473333333333333334.gif?size=64' party.gif
  darkroom render '/attachments/1/2/photo.png?width=400&format=jpg' - | display`,
  run: async ([target = '', output = ''], terminal) => {
    const config = readConfig(terminal.environment);
    const parts = { log: createPlainLog(terminal.stderr) };
    return withOfflineApp(config, parts, terminal.signal, async (send) => {
      const response = await send(toPath(target));
      if (response.status !== 200) throw new CommandError(await formatErrorResponse(response));
      const measure = new Measure();
      const chunks = measure.through(response.body);
      const isStandardOutput = output === '-';
      const { stdout, signal } = terminal;
      if (isStandardOutput) await pipeline(chunks, stdout, { signal, end: false });
      else await writeOutputFile(output, chunks, signal);
      const { sizeBytes } = measure;
      const facts = [response.status, response.contentType, ...measure.dimensions()];
      const where = isStandardOutput ? '' : ` to ${output}`;
      writeLine(
        isStandardOutput ? terminal.stderr : stdout,
        `${facts.join(', ')}, ${formatByteSize(sizeBytes)} (${sizeBytes})${where}`,
      );
      return exitStatus.ok;
    });
  },
};

/**
 * Returns path and query of a URL; the service will reject an unknown path.
 *
 * @throws CommandError if the text is not a URL, or clients would send it differently: the response would be that to
 *   another URL
 */
function toPath(target: string): string {
  const local = target.replace(/^https?:\/\/[^/?#]*/i, '');
  const path = local.startsWith('/') ? local : `/${local}`;
  if (!URL.canParse(path, 'http://localhost')) {
    throw usageError(`"${path}" is not the path of a URL`);
  }
  const { pathname, search } = new URL(path, 'http://localhost');
  const sent = pathname + search;
  if (sent === path) return path;
  throw usageError(`"${path}" is not how a URL is sent. Clients send ${sent}`);
}

class Measure {
  sizeBytes = 0;
  #kept: Uint8Array[] = [];

  async *through(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of chunks) {
      this.sizeBytes += chunk.length;
      if (this.sizeBytes <= MAX_MEASURED_BYTES) this.#kept.push(chunk);
      else this.#kept = [];
      yield chunk;
    }
  }

  /** Returns width, height and frames of an image that we decode; empty for other files. */
  dimensions(): string[] {
    try {
      const header = readImageHeader(Buffer.concat(this.#kept));
      if (header === undefined) return [];
      const { widthPx, heightPx, frames } = header;
      return [`${widthPx} x ${heightPx} px`, ...(frames > 1 ? [`${frames} frames`] : [])];
    } catch {
      return []; // a broken image that the service passes through
    }
  }
}
