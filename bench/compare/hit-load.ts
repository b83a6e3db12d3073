import { connect } from 'node:net';

/** What so many clients got who asked for the same thing again and again. */
export interface HitResult {
  readonly answers: number;
  readonly seconds: number;
  /** CPU of the clients. */
  readonly clientCpuSeconds: number;
  readonly latenciesMs: Float64Array;
}

const HEAD_END = Buffer.from('\r\n\r\n');

/** Each client reads into one buffer of its own, over and over: large bodies cost it the reading alone. */
const READ_BYTES = 256 * 1024;

/**
 * Asks for one thing over and over, each client as soon as it has been answered. As lean as it can be, since
 * it shares the machine with the server: no parser but for the length.
 *
 * @param head of the request, without its last line end
 * @throws Error if an answer has another status, or a connection ends
 */
export async function askAgainAndAgain(
  origin: string,
  head: string,
  { clients, durationMs, status }: { clients: number; durationMs: number; status: number },
): Promise<HitResult> {
  const { hostname, port } = new URL(origin);
  const request = Buffer.from(`${head}\r\nHost: ${hostname}:${port}\r\n\r\n`);
  const cpuBefore = process.cpuUsage();
  const beganMs = performance.now();
  const endMs = beganMs + durationMs;
  const latencies = await Promise.all(
    Array.from({ length: clients }, () =>
      runClient({ host: hostname, port: Number(port) }, request, status, endMs),
    ),
  );
  const { user, system } = process.cpuUsage(cpuBefore);
  const all = Float64Array.from(latencies.flat());
  return {
    answers: all.length,
    seconds: (performance.now() - beganMs) / 1000,
    clientCpuSeconds: (user + system) / 1e6,
    latenciesMs: all,
  };
}

function runClient(
  server: { readonly host: string; readonly port: number },
  request: Buffer,
  status: number,
  endMs: number,
): Promise<number[]> {
  return new Promise((resolve, reject) => {
    const latencies: number[] = [];
    let sentMs = performance.now();
    let pending: Buffer | undefined;
    let leftBytes = 0;
    const receive = (bytesRead: number, buffer: Uint8Array): boolean => {
      take(Buffer.from(buffer.buffer, buffer.byteOffset, bytesRead));
      return true;
    };
    const onread = { buffer: Buffer.alloc(READ_BYTES), callback: receive };
    const socket = connect({ ...server, noDelay: true, onread });
    const ask = (): void => {
      sentMs = performance.now();
      socket.write(request);
    };
    const finish = (): void => {
      const nowMs = performance.now();
      latencies.push(nowMs - sentMs);
      if (nowMs < endMs) ask();
      else {
        socket.off('close', onClose);
        socket.destroy();
        resolve(latencies);
      }
    };
    const onClose = (): void => reject(new Error('The server has hung up.'));
    socket.on('close', onClose);
    socket.on('error', reject);
    socket.once('connect', ask);
    const take = (chunk: Buffer): void => {
      if (leftBytes > 0) {
        leftBytes -= chunk.length;
        if (leftBytes === 0) finish();
        return;
      }
      const bytes = pending === undefined ? chunk : Buffer.concat([pending, chunk]);
      const headEnd = bytes.indexOf(HEAD_END);
      if (headEnd < 0) {
        // A copy: the buffer is about to be used again.
        pending = Buffer.from(bytes);
        return;
      }
      pending = undefined;
      const head = bytes.toString('latin1', 0, headEnd);
      if (!head.startsWith(`HTTP/1.1 ${status} `)) {
        reject(new Error(`Expected ${status}, but received ${head.split('\r\n', 1)[0]}`));
        socket.destroy();
        return;
      }
      const length = status === 304 ? 0 : Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1]);
      leftBytes = length - (bytes.length - headEnd - HEAD_END.length);
      if (leftBytes === 0) finish();
    };
  });
}
