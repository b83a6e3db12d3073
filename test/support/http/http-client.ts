import { Agent } from 'undici';

/** A response with its complete body. */
export type ClientResponse = Awaited<ReturnType<SendRequest>>;

/** Sends a request with the exact target: `..` is not resolved. */
export type SendRequest = ReturnType<typeof createClient>;

/** Creates a client with connections of its own, over TLS with `connect.ca`. raw-http.ts sends invalid requests. */
export function createClient(
  port: number,
  options: Agent.Options & { readonly connect?: { readonly ca?: Buffer } } = {},
) {
  const agent = new Agent(options);
  const origin = `${options.connect?.ca ? 'https' : 'http'}://127.0.0.1:${port}`;
  return async (path: string, options: Partial<Agent.DispatchOptions> = {}) => {
    const response = await agent.request({ method: 'GET', ...options, origin, path });
    const lines = Object.entries(response.headers).map(([name, value = []]) => [
      name,
      [value].flat(),
    ]);
    const byName: Readonly<Record<string, readonly string[]>> = Object.fromEntries(lines);
    /** Returns a header with its lines joined (RFC 9110 §5.3); empty if the header is missing. */
    const header = (name: string): string => (byName[name] ?? []).join(', ');
    return {
      status: response.statusCode,
      /** All lines of each header, by lower-case name. */
      headers: byName,
      body: Buffer.from(await response.body.arrayBuffer()),
      header,
      /** Outcome that nginx reports in Cache-Status: `hit`, `fwd=uri-miss` and so on. */
      nginx: /(?:^|, )nginx; ([^,]*)/.exec(header('cache-status'))?.[1] ?? '',
    };
  };
}
