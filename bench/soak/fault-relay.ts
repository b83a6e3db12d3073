import { once } from 'node:events';
import {
  Agent,
  createServer,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { type FaultKind, isStruck, type Wave } from './fault-waves.ts';

/** Within the service's deadline for a first byte, and beyond it, in milliseconds. */
const SLOW_ANSWER_MS = 2_000;
const LATE_ANSWER_MS = 8_000;

const ERROR_ANSWERS: Partial<Record<FaultKind, readonly [status: number, code: string]>> = {
  'status 500': [500, 'InternalError'],
  'status 503 SlowDown': [503, 'SlowDown'],
};

/** Passes requests on to an S3 server on this machine; during a wave of faults it spoils answers. */
export class FaultRelay {
  readonly #targetPort: number;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #server: Server;
  #port = 0;
  #wave: Pick<Wave, 'index' | 'kind'> | undefined;

  /** @param targetPort of the S3 server */
  constructor(targetPort: number) {
    this.#targetPort = targetPort;
    this.#server = createServer((asked, answer) => void this.#serve(asked, answer));
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Begins to listen; the second time, on the same port. */
  async listen(): Promise<void> {
    this.#server.listen(this.#port, '127.0.0.1');
    await once(this.#server, 'listening');
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  /** Begins a wave of faults, in place of the one before. */
  async strike(wave: Pick<Wave, 'index' | 'kind'>): Promise<void> {
    await this.calm();
    this.#wave = wave;
    if (wave.kind !== 'connections refused') return;
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }

  /** Ends it. */
  async calm(): Promise<void> {
    const kind = this.#wave?.kind;
    this.#wave = undefined;
    if (kind === 'connections refused') await this.listen();
  }

  async #serve(asked: IncomingMessage, answer: ServerResponse): Promise<void> {
    const fault = this.#faultOf(asked.url ?? '');
    const error = fault === undefined ? undefined : ERROR_ANSWERS[fault];
    if (error !== undefined) {
      const [status, code] = error;
      const body = `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code></Error>`;
      answer.writeHead(status, { 'content-type': 'application/xml' }).end(body);
      return;
    }
    if (fault === 'slow answers') await gone(answer, SLOW_ANSWER_MS);
    if (fault === 'late answers') await gone(answer, LATE_ANSWER_MS);
    if (!answer.destroyed) this.#pass(asked, answer, fault);
  }

  /** Path style: the bucket's name, then the key. */
  #faultOf(target: string): FaultKind | undefined {
    const path = target.split('?', 1)[0] ?? '';
    const key = decodeURIComponent(path.slice(path.indexOf('/', 1) + 1));
    return this.#wave !== undefined && isStruck(this.#wave, key) ? this.#wave.kind : undefined;
  }

  #pass(asked: IncomingMessage, answer: ServerResponse, fault: FaultKind | undefined): void {
    const { method, url: path, headers } = asked;
    const onward = request({
      agent: this.#agent,
      host: '127.0.0.1',
      port: this.#targetPort,
      method,
      path,
      // With its own Host, which is signed.
      headers,
    });
    answer.once('close', () => onward.destroy());
    onward.on('error', () => answer.destroy());
    onward.once('response', (received) => {
      answer.writeHead(received.statusCode ?? 502, received.rawHeaders);
      const half = Math.ceil(Number(received.headers['content-length'] ?? 0) / 2);
      if (half > 0 && isOfBody(fault)) spoil(received, answer, half, fault);
      // Whoever of the two goes first, the other one goes too.
      else pipeline(received, answer).catch(() => answer.destroy());
    });
    onward.end();
  }
}

type BodyFault = 'stalled bodies' | 'reset connections' | 'truncated bodies';

function isOfBody(fault: FaultKind | undefined): fault is BodyFault {
  return (
    fault === 'stalled bodies' || fault === 'reset connections' || fault === 'truncated bodies'
  );
}

/** Passes so many bytes of a body on, and then does its harm. */
function spoil(
  received: IncomingMessage,
  answer: ServerResponse,
  bytes: number,
  fault: BodyFault,
): void {
  let left = bytes;
  const harm = (): void => {
    if (fault === 'reset connections') answer.socket?.resetAndDestroy();
    if (fault === 'truncated bodies') answer.socket?.end();
  };
  received.on('error', () => undefined);
  received.on('data', (chunk: Buffer) => {
    if (left <= 0) return;
    const part = chunk.subarray(0, left);
    left -= part.length;
    const isTaken = answer.write(part, left === 0 ? harm : undefined);
    if (left === 0) received.destroy();
    else if (!isTaken) {
      received.pause();
      answer.once('drain', () => received.resume());
    }
  });
}

/** Waits, but no longer than the client does. */
async function gone(answer: ServerResponse, ms: number): Promise<void> {
  const settled = new AbortController();
  const timer = setTimeout(() => settled.abort(), ms);
  await once(answer, 'close', { signal: settled.signal }).catch(() => undefined);
  clearTimeout(timer);
}
