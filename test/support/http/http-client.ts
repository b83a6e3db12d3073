import { once } from 'node:events';
import {
  type AgentOptions,
  type IncomingMessage,
  Agent as PlainAgent,
  request as plainRequest,
} from 'node:http';
import { Agent as TlsAgent, request as tlsRequest } from 'node:https';

/** A response, with its body whole. */
export interface ClientResponse {
  readonly status: number;
  /** By lower-case name, each with all the lines it came in. */
  readonly headers: Readonly<Record<string, readonly string[]>>;
  readonly body: Buffer;
  /** Header by name, its lines joined as HTTP would; empty where there is none. */
  header(name: string): string;
  /** What nginx has in Cache-Status: `hit`, `fwd=uri-miss` and so on. */
  readonly nginx: string;
}

interface AskOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
}

/** Sends a request, its target as it is, without the resolving of `..` for example. */
export type Ask = (target: string, options?: AskOptions) => Promise<ClientResponse>;

/**
 * A client of a port of this machine, which speaks HTTP/1.1 over connections of its own.
 *
 * @param options how it connects; by TLS where they name the certificate (`ca`) that it trusts
 */
export function createClient(
  port: number,
  { ca, ...options }: AgentOptions & { readonly ca?: Buffer } = {},
): Ask {
  const keptAlive = { keepAlive: true, ...options };
  const agent = ca ? new TlsAgent({ ca, ...keptAlive }) : new PlainAgent(keptAlive);
  const request = ca ? tlsRequest : plainRequest;
  return async (path, { method = 'GET', headers = {}, body } = {}) => {
    const sent = request({ host: '127.0.0.1', port, agent, path, method, headers });
    sent.end(body);
    const [message] = (await once(sent, 'response')) as [IncomingMessage];
    const chunks: Buffer[] = [];
    for await (const chunk of message) chunks.push(chunk as Buffer);
    const lines: Record<string, string[]> = {};
    for (let index = 0; index < message.rawHeaders.length; index += 2) {
      const name = (message.rawHeaders[index] ?? '').toLowerCase();
      lines[name] = [...(lines[name] ?? []), message.rawHeaders[index + 1] ?? ''];
    }
    const header = (name: string): string => (lines[name] ?? []).join(', ');
    return {
      status: message.statusCode ?? 0,
      headers: lines,
      body: Buffer.concat(chunks),
      header,
      nginx: /(?:^|, )nginx; ([^,]*)/.exec(header('cache-status'))?.[1] ?? '',
    };
  };
}
