import { Agent } from 'undici';

/** A response, with its body whole. */
export type ClientResponse = Awaited<ReturnType<SendRequest>>;

/** Sends a request, its target as it is, without the resolving of `..` for example. */
export type SendRequest = ReturnType<typeof createClient>;

/**
 * A client for sound requests to a port of this machine, over connections of its own; what is not sound, raw-http.ts
 * sends.
 *
 * @param options how it connects; by TLS where they name the certificate (`connect.ca`) that it trusts
 */
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
    /** Header by name, its lines joined as HTTP would; empty where there is none. */
    const header = (name: string): string => (byName[name] ?? []).join(', ');
    return {
      status: response.statusCode,
      /** By lower-case name, each with all the lines it came in. */
      headers: byName,
      body: Buffer.from(await response.body.arrayBuffer()),
      header,
      /** What nginx has in Cache-Status: `hit`, `fwd=uri-miss` and so on. */
      nginx: /(?:^|, )nginx; ([^,]*)/.exec(header('cache-status'))?.[1] ?? '',
    };
  };
}
