import { get as httpGet } from 'node:http';
import { get as httpsGet } from 'node:https';
import { type Config, readConfig } from '../config/config.ts';
import { type Command, CommandError, exitStatus, formatOrigin, writeLine } from './command.ts';

const TIMEOUT_MS = 3_000;

/** For health checks of containers, whose images have no curl. */
export const healthCommand: Command = {
  summary: 'checks whether the service here is ready',
  operands: [],
  help: `
Requests one of these on this machine, with the settings of the service:
  /readyz             of the admin listener, if ADMIN_PORT is set
  /_health            of the internal listener, if INTERNAL_PORT is set
  /avatars/0.png      of the public listener otherwise

Exit status: 0 it responds with 200; 1 it does not; 78 settings are not valid.`,
  run: async (_operands, { environment, stdout, signal }) => {
    const url = findHealthUrl(readConfig(environment));
    const { status, text } = await request(url, signal);
    if (status !== 200) throw new CommandError(`${url} responded with ${status} ${text}`.trim());
    writeLine(stdout, `${url} responded with 200`);
    return exitStatus.ok;
  },
};

function findHealthUrl({ admin, internal, listen, http }: Config): string {
  if (admin !== undefined) return `http://${formatOrigin(admin.listen)}/readyz`;
  const scheme = http.tls === undefined ? 'http' : 'https';
  if (internal === undefined) return `${scheme}://${formatOrigin(listen)}/avatars/0.png`;
  return `${internal.isShared ? scheme : 'http'}://${formatOrigin(internal.listen)}/_health`;
}

/** @throws CommandError without a response */
function request(url: string, signal: AbortSignal): Promise<{ status: number; text: string }> {
  const options = {
    // The certificate names the public host, but the request goes to this machine.
    rejectUnauthorized: false,
    signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
  };
  const get = url.startsWith('https:') ? httpsGet : httpGet;
  return new Promise((resolve, reject) => {
    const fail = (cause: Error): void =>
      reject(
        signal.aborted
          ? signal.reason
          : new CommandError(`the service does not respond at ${url}`, { cause }),
      );
    get(url, options, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', fail);
      response.on('end', () => {
        const isText = /json|text/.test(response.headers['content-type'] ?? '');
        const text = isText ? Buffer.concat(chunks).toString() : '';
        resolve({ status: response.statusCode ?? 0, text });
      });
    }).on('error', fail);
  });
}
