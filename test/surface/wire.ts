import { once } from 'node:events';
import { connectTo } from '../support/http/raw-http.ts';
import { readResponse, type WireResponse } from '../support/http/wire-response.ts';

const DEADLINE_MS = 15_000;

export type Wire = Awaited<ReturnType<typeof openWire>>;

/** Opens a connection; all waits fail after its deadline. */
export async function openWire(port: number) {
  const socket = (await connectTo(port, { allowHalfOpen: true })).setNoDelay();
  const chunks = socket.iterator({ destroyOnReturn: false });
  const deadline = once(AbortSignal.timeout(DEADLINE_MS), 'abort').then(() => 'late' as const);
  let received: Buffer = Buffer.alloc(0);
  let isEnded = false;
  const quote = (): string => JSON.stringify(received.toString('latin1').slice(0, 200));

  const more = async (): Promise<void> => {
    // A reset counts as a regular end.
    const next = chunks.next().catch(() => ({ done: true, value: undefined }));
    const chunk = await Promise.race([next, deadline]);
    if (chunk === 'late') throw new Error(`a hang: nothing more after ${quote()}`);
    if (chunk.done) isEnded = true;
    else received = Buffer.concat([received, chunk.value]);
  };

  return {
    /** Sends bytes, split at these positions. */
    send: async (bytes: Buffer, cuts: readonly number[] = []): Promise<void> => {
      let from = 0;
      for (const cut of [...cuts, bytes.length].sort((a, b) => a - b)) {
        if (cut <= from || cut > bytes.length || socket.destroyed) continue;
        socket.write(bytes.subarray(from, cut));
        from = cut;
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
    end: (): void => void socket.end(),
    /** Reads the next response; `undefined` if the connection ends before it or, if permitted, within it. */
    next: async (isHead: boolean, mayBeCut = false): Promise<WireResponse | undefined> => {
      while (true) {
        const read = readResponse(received, isHead);
        if (read !== undefined) {
          received = read.rest;
          return read.response;
        }
        if (isEnded) {
          if (received.length === 0 || mayBeCut) return undefined;
          throw new Error(`truncated response: ${quote()}`);
        }
        await more();
      }
    },
    /** Reads all bytes until the service closes the connection. */
    rest: async (): Promise<Buffer> => {
      while (!isEnded) await more();
      return received;
    },
    close: (): void => void socket.destroy(),
  };
}

/** Returns a script that sends the same bytes, for the report of a failure. */
export function scriptOf(port: number, bytes: Buffer): string {
  const readable = JSON.stringify(bytes.subarray(0, 4_000).toString('latin1'));
  return [
    `# ${readable}${bytes.length > 4_000 ? ` … ${bytes.length} bytes` : ''}`,
    `node -e 'const s = require("net").connect(${port}, "127.0.0.1"); s.pipe(process.stdout); s.write(Buffer.from("${bytes.toString('base64')}", "base64"))'`,
  ].join('\n');
}
