import { readConfig } from '../config/config.ts';
import {
  type Command,
  CommandError,
  exitStatus,
  formatOrigin,
  type Terminal,
  writeLine,
} from './command.ts';

/** A purge of a large store may take minutes. */
const TIMEOUT_MS = 300_000;

const BLOCKED = `
WHAT is one of these:
  avatars/1/ab12                     the key of an original
  attachments/1471234567890123456/   whole segments of keys, and a slash
  9f86d081884c7d65…                  the SHA-256 of an original, 64 digits
  https://media.example.org/cat.png  a URL of another site`;

const ADDRESS = `
The request goes to ADMIN_HOST and ADMIN_PORT with ADMIN_TOKEN: use the
settings of the service.

Exit status: 0 done; 1 the service cannot be reached, or refused; 78
settings are not valid.`;

export const blockCommand: Command = {
  summary: 'blocks an original in all replicas',
  operands: ['WHAT'],
  help: `${BLOCKED}

Blocked media return 451 everywhere and are purged. The service needs
BLOCKLIST.
${ADDRESS}`,
  run: async ([what = ''], terminal) => {
    writeLine(terminal.stdout, await request('/blocks', formatBlock(what), terminal));
    return exitStatus.ok;
  },
};

export const unblockCommand: Command = {
  summary: 'removes a block in all replicas',
  operands: ['WHAT'],
  help: `${BLOCKED}

WHAT is the same as in darkroom block. Other blocks that match the same
original remain.
${ADDRESS}`,
  run: async ([what = ''], terminal) => {
    writeLine(terminal.stdout, await request('/blocks', formatBlock(what), terminal, 'DELETE'));
    return exitStatus.ok;
  },
};

function formatBlock(what: string): object {
  const member = /^[\da-f]{64}$/i.test(what) ? 'sha256' : memberOf(what, 'keys', 'prefixes');
  return { [member]: [what] };
}

export const purgeCommand: Command = {
  summary: 'deletes renderings in one replica and in the store',
  operands: ['WHAT'],
  help: `
WHAT is one of these:
  /avatars/1/ab12.webp?size=80       a path with its query: one rendering
  avatars/1/ab12                     the key of an original: all renderings
  attachments/1471234567890123456/   whole segments of keys, and a slash
  https://media.example.org/cat.png  a URL of another site
${ADDRESS}`,
  run: async ([what = ''], terminal) => {
    const member = what.startsWith('/') ? 'paths' : memberOf(what, 'assets', 'prefix');
    const body = { [member]: member === 'prefix' ? what : [what] };
    writeLine(terminal.stdout, await request('/purge', body, terminal));
    return exitStatus.ok;
  },
};

function memberOf(what: string, key: string, prefix: string): string {
  if (/^https?:/i.test(what)) return 'external';
  return what.endsWith('/') ? prefix : key;
}

export async function purgeOriginal(
  key: string,
  environment: Terminal['environment'],
): Promise<void> {
  // Not aborted by a stop, because the original was already replaced.
  const { signal } = new AbortController();
  await request('/purge', { assets: [key] }, { environment, signal });
}

export async function isBlockedBytes(
  sha256: string,
  environment: Terminal['environment'],
): Promise<boolean> {
  const { signal } = new AbortController();
  const path = `/blocks?kind=sha256&value=${sha256}`;
  const found = await request(path, undefined, { environment, signal }, 'GET');
  return JSON.parse(found).blocks.length > 0;
}

/** Returns the body of the response. @throws CommandError */
async function request(
  path: string,
  body: object | undefined,
  { environment, signal }: Pick<Terminal, 'environment' | 'signal'>,
  method: 'POST' | 'DELETE' | 'GET' = 'POST',
): Promise<string> {
  const { admin, blocklist } = readConfig(environment);
  if (admin === undefined) throw new CommandError('ADMIN_PORT is not set');
  if (path === '/blocks' && blocklist === undefined) {
    throw new CommandError('blocking is off: set BLOCKLIST');
  }
  const url = `http://${formatOrigin(admin.listen)}${path}`;
  let response: Response;
  try {
    response = await fetch(url, {
      method,
      headers: {
        authorization: `Bearer ${admin.token}`,
        ...(body && { 'content-type': 'application/json' }),
      },
      body: body === undefined ? null : JSON.stringify(body),
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    });
  } catch (cause) {
    signal.throwIfAborted();
    throw new CommandError(`the service does not respond at ${url}`, { cause });
  }
  const text = await response.text();
  if (!response.ok) throw new CommandError(`the service has refused: ${response.status} ${text}`);
  return text;
}
