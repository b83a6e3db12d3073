import { Agent, type IncomingHttpHeaders, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

/** A whole answer of the service; times in milliseconds, the start by the Unix clock. */
export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly startedMs: number;
  readonly tookMs: number;
}

/** Longer than all deadlines of the service together: origin, queue, transform. */
const NO_ANSWER_MS = 60_000;

/** A busy service may say so more than once; one that says it for ever is at fault. */
const MAX_ATTEMPTS = 60;

/** A client that comes again when it is told to: a 503 is never the answer to an original. */
export class HttpClient {
  readonly #origin: string;
  readonly #agent = new Agent({ keepAlive: true });
  /** How many answers were a 503. */
  turnedAway = 0;

  constructor(origin: string) {
    this.#origin = origin;
  }

  /** @throws Error if the connection breaks or no answer comes */
  async get(target: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    for (let attempt = 1; ; attempt += 1) {
      const answer = await this.#ask(target, headers);
      const retryAfter = answer.headers['retry-after'];
      const isFinal = answer.status !== 503 || retryAfter === undefined;
      if (isFinal || attempt === MAX_ATTEMPTS) return answer;
      this.turnedAway += 1;
      await sleep(1000 * Number(retryAfter));
    }
  }

  close(): void {
    this.#agent.destroy();
  }

  #ask(target: string, headers: Readonly<Record<string, string>>): Promise<Answer> {
    const startedMs = performance.timeOrigin + performance.now();
    const url = new URL(target, this.#origin);
    return new Promise((resolve, reject) => {
      const asked = request(url, { agent: this.#agent, headers, timeout: NO_ANSWER_MS });
      asked.once('response', (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.once('error', reject);
        response.once('end', () => {
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: Buffer.concat(chunks),
            startedMs,
            tookMs: performance.timeOrigin + performance.now() - startedMs,
          });
        });
      });
      asked.once('timeout', () => asked.destroy(new Error(`No answer to ${target}`)));
      asked.once('error', (error: NodeJS.ErrnoException) => {
        // The server may hang up on an idle connection just when it is used again.
        const isStale = asked.reusedSocket && error.code === 'ECONNRESET';
        if (isStale) resolve(this.#ask(target, { ...headers, connection: 'close' }));
        else reject(error);
      });
      asked.end();
    });
  }
}
