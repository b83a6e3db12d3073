import { once } from 'node:events';
import { type IncomingMessage, Agent as PlainAgent, request as plainRequest } from 'node:http';
import { Agent, request as tlsRequest } from 'node:https';

/** An answer, with its body whole. */
export interface Answer {
  readonly status: number;
  /** By lower-case name, each with all the lines it came in. */
  readonly headers: Readonly<Record<string, readonly string[]>>;
  readonly body: Buffer;
  /** Header by name, its lines joined as HTTP would; empty where there is none. */
  header(name: string): string;
  /** What nginx had to say in Cache-Status: `hit`, `fwd=uri-miss` and so on. */
  readonly nginx: string;
}

interface AskOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends a request, its target untouched by good manners such as the resolving of `..`. */
export type Ask = (target: string, options?: AskOptions) => Promise<Answer>;

/** A client of a TLS port of this machine; it speaks HTTP/1.1 over at most `connections` at a time. */
export function createTlsClient(port: number, ca: Buffer, connections = Infinity): Ask {
  const agent = new Agent({ ca, keepAlive: true, maxSockets: connections });
  return async (path, { method = 'GET', headers = {} } = {}) => {
    const sent = tlsRequest({ host: '127.0.0.1', port, agent, path, method, headers });
    sent.end();
    return collect(((await once(sent, 'response')) as [IncomingMessage])[0]);
  };
}

/** A client of a port without TLS. */
export function createPlainClient(port: () => number): Ask {
  const agent = new PlainAgent({ keepAlive: false });
  return async (path, { method = 'GET', headers = {} } = {}) => {
    const sent = plainRequest({ host: '127.0.0.1', port: port(), agent, path, method, headers });
    sent.end();
    return collect(((await once(sent, 'response')) as [IncomingMessage])[0]);
  };
}

async function collect(message: IncomingMessage): Promise<Answer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  const headers: Record<string, string[]> = {};
  for (let index = 0; index < message.rawHeaders.length; index += 2) {
    const name = (message.rawHeaders[index] ?? '').toLowerCase();
    const lines = headers[name] ?? [];
    headers[name] = [...lines, message.rawHeaders[index + 1] ?? ''];
  }
  const header = (name: string): string => (headers[name] ?? []).join(', ');
  return {
    status: message.statusCode ?? 0,
    headers,
    body: Buffer.concat(chunks),
    header,
    nginx: /(?:^|, )nginx; ([^,]*)/.exec(header('cache-status'))?.[1] ?? '',
  };
}
