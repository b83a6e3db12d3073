import { connect, type Socket } from 'node:net';

/** What so many clients got who asked for the same thing again and again. */
export interface HitResult {
  readonly answers: number;
  readonly seconds: number;
  /** CPU of the clients. */
  readonly clientCpuSeconds: number;
  readonly latenciesMs: Float64Array;
}

const HEAD_END = Buffer.from('\r\n\r\n');

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
    Array.from({ length: clients }, () => {
      const socket = connect({ host: hostname, port: Number(port), noDelay: true });
      return runClient(socket, request, status, endMs);
    }),
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
  socket: Socket,
  request: Buffer,
  status: number,
  endMs: number,
): Promise<number[]> {
  return new Promise((resolve, reject) => {
    const latencies: number[] = [];
    let sentMs = performance.now();
    let pending: Buffer | undefined;
    let leftBytes = 0;
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
    socket.on('data', (chunk: Buffer) => {
      if (leftBytes > 0) {
        leftBytes -= chunk.length;
        if (leftBytes === 0) finish();
        return;
      }
      const bytes = pending === undefined ? chunk : Buffer.concat([pending, chunk]);
      const headEnd = bytes.indexOf(HEAD_END);
      if (headEnd < 0) {
        pending = bytes;
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
    });
  });
}
