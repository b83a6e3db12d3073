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

/** Reading the dimensions needs the response in memory. */
const MAX_MEASURED_BYTES = 64 * 1024 * 1024;

export const renderCommand: Command = {
  summary: 'renders one URL to a file, without a server',
  operands: ['URL-PATH', 'OUTPUT-FILE'],
  help: `
Writes the bytes that the service would send, with the same storage and
limits, and prints status, type, dimensions and size. URL-PATH is path and
query of a URL; scheme and host are ignored. Quote it: shells interpret ? and
&. OUTPUT-FILE is replaced when the rendering is complete; - is standard
output. After an error, the command prints the error of the API and writes
nothing.

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
      const properties = [response.status, response.contentType, ...measure.dimensions()];
      const where = isStandardOutput ? '' : ` to ${output}`;
      writeLine(
        isStandardOutput ? terminal.stderr : stdout,
        `${properties.join(', ')}, ${formatByteSize(sizeBytes)} (${sizeBytes})${where}`,
      );
      return exitStatus.ok;
    });
  },
};

/** Returns path and query of a URL. @throws CommandError if it is not a URL, or clients would send another one */
function toPath(target: string): string {
  const local = target.replace(/^https?:\/\/[^/?#]*/i, '');
  const path = local.startsWith('/') ? local : `/${local}`;
  if (!URL.canParse(path, 'http://localhost')) {
    throw usageError(`"${path}" is not a valid URL path`);
  }
  const { pathname, search } = new URL(path, 'http://localhost');
  const sent = pathname + search;
  if (sent === path) return path;
  throw usageError(`"${path}" is not a normalized URL path. Clients send ${sent}`);
}

class Measure {
  sizeBytes = 0;
  #chunks: Uint8Array[] = [];

  async *through(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of chunks) {
      this.sizeBytes += chunk.length;
      if (this.sizeBytes <= MAX_MEASURED_BYTES) this.#chunks.push(chunk);
      else this.#chunks = [];
      yield chunk;
    }
  }

  /** Returns an empty list for files other than images. */
  dimensions(): string[] {
    try {
      const header = readImageHeader(Buffer.concat(this.#chunks));
      if (header === undefined) return [];
      const { widthPx, heightPx, frames } = header;
      return [`${widthPx} x ${heightPx} px`, ...(frames > 1 ? [`${frames} frames`] : [])];
    } catch {
      return []; // a broken image that the service passes through
    }
  }
}
