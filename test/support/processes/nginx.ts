import { execFileSync, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { atEnd } from '../at-end.ts';
import { tlsFiles } from '../http/tls-files.ts';
import { useTemporaryDirectory } from '../temporary-directory.ts';
import { findFreePorts } from './local-server.ts';

/** Recommended configuration files. Only this module knows how to run them elsewhere. */
const RECOMMENDED = new URL('../../../deploy/nginx/', import.meta.url);

/** Replacements in a recommended file, by the text that they replace. */
type Values = Readonly<Record<string, string>>;

/**
 * Starts nginx with `darkroom.conf` inside Debian's nginx.conf, until the end of the test or file. Only ports, paths
 * and the certificate are replaced, and each must be found. `isPlatform`: it replaces the platform's media service.
 */
export async function useNginx(upstreamPort: number, isPlatform = false) {
  const nginx = await run('darkroom.conf', (port, plainPort, unusedPort) => ({
    'listen 443 ssl': `listen 127.0.0.1:${port} ssl`,
    'listen [::]:443 ssl': `listen 127.0.0.2:${port} ssl`,
    'listen 80;': `listen 127.0.0.1:${plainPort};`,
    'listen [::]:80;': `listen 127.0.0.2:${plainPort};`,
    ...upstreams(upstreamPort, unusedPort),
    '_is_platform { default 0; }': `_is_platform { default ${Number(isPlatform)}; }`,
    '/etc/ssl/certs/darkroom.pem': tlsFiles.cert,
    '/etc/ssl/private/darkroom.key': tlsFiles.key,
  }));
  return {
    ...nginx,
    /** Certificate in PEM, which clients must trust. */
    certificate: readFileSync(tlsFiles.cert),
  };
}

/** Starts nginx with `darkroom-plain.conf`: a primary upstream and its backup. */
export async function usePlainNginx(...upstreamPorts: Parameters<typeof upstreams>) {
  return run('darkroom-plain.conf', (port) => ({
    'listen 127.0.0.1:8080;': `listen 127.0.0.1:${port};`,
    ...upstreams(...upstreamPorts),
  }));
}

function upstreams(first: number, second: number): Values {
  return {
    '127.0.0.1:3000 max_fails=0;': `127.0.0.1:${first} max_fails=0;`,
    '127.0.0.1:3001 max_fails=0 backup;': `127.0.0.1:${second} max_fails=0 backup;`,
  };
}

/** Starts nginx with `darkroom-replicas.conf`. Each of its replicas needs a port: nginx cannot resolve their hosts. */
export async function useNginxForReplicas(replicaPorts: readonly number[]) {
  const replicas = replicaPorts.map((replica, at) => [
    `server darkroom-${at + 1}:3000 `,
    `server 127.0.0.1:${replica} `,
  ]);
  return run('darkroom-replicas.conf', (port) => ({
    'listen 8080;': `listen 127.0.0.1:${port};`,
    ...Object.fromEntries(replicas),
  }));
}

/** Starts nginx with the platform's `nginx.conf`, which has no cache and no log. */
export async function usePlatformNginx(upstreamPort: number) {
  return run('../platform/nginx.conf', (port) => ({
    'listen 127.0.0.1:8080;': `listen 127.0.0.1:${port};`,
    '127.0.0.1:3000 max_fails=0;': `127.0.0.1:${upstreamPort} max_fails=0;`,
  }));
}

/** @throws Error if a text is not found */
function fill(name: string, values: Values): string {
  return Object.entries(values).reduce(
    (text, [what, value]) => {
      if (!text.includes(what)) throw new Error(`"${what}" is not in ${name}`);
      return text.replaceAll(what, value);
    },
    readFileSync(new URL(name, RECOMMENDED), 'utf8'),
  );
}

/** Runs nginx with a recommended file and its replacements for three free ports. */
async function run(name: string, valuesFor: (...ports: [number, number, number]) => Values) {
  const [port = 0, plainPort = 0, unusedPort = 0] = await findFreePorts(3);
  const { path: directory, put } = await useTemporaryDirectory();
  await cp(new URL('snippets', RECOMMENDED), join(directory, 'snippets'), { recursive: true });
  const server = 'snippets/darkroom-server.conf';
  await put(server, fill(server, { '/var/log/nginx/error.log': 'stderr' }));
  const site = fill(name, valuesFor(port, plainPort, unusedPort))
    .replaceAll('/var/cache/', `${directory}/`)
    .replace(/\/var\/log\/nginx\/\w+\.log/, join(directory, 'access.log'));
  await put('darkroom.conf', site);
  await put('nginx.conf', debianConfiguration(directory));
  const child = spawn('nginx', ['-p', directory, '-c', join(directory, 'nginx.conf')], {
    // Debian installs nginx in /usr/sbin, which may be missing in PATH.
    env: { PATH: `${process.env.PATH ?? ''}:/usr/sbin` },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const kill = (): void => void child.kill('SIGTERM');
  process.once('exit', kill);
  let log = '';
  const ended = new Promise<void>((resolve) => child.once('close', resolve));
  atEnd(async () => {
    kill();
    await ended;
    process.off('exit', kill);
  });
  await new Promise<void>((resolve, reject) => {
    child.stderr.on('data', (chunk: Buffer) => {
      log += chunk.toString();
      // nginx listens before it starts its workers.
      if (log.includes('start worker process ')) resolve();
    });
    child.once('error', reject);
    child.once('close', () => reject(new Error(`nginx does not start: ${log}`)));
  });
  return {
    port,
    /** Port of the listener that redirects to HTTPS, if the file has one. */
    plainPort,
    /** Runs the recommended purge script for a path prefix; returns its output. */
    purge: (prefix: string): string => {
      const caches = [join(directory, 'darkroom'), join(directory, 'darkroom-refused')];
      return execFileSync('deploy/nginx/purge', [prefix, ...caches], { encoding: 'utf8' });
    },
    /** Returns nginx's log so far, at level `notice` and above. */
    log: () => log,
    accessLog: (): string => readFileSync(join(directory, 'access.log'), 'utf8'),
  };
}

/** Debian's /etc/nginx/nginx.conf around a file of conf.d, with other paths and logs. */
function debianConfiguration(directory: string): string {
  return `
daemon off;
worker_processes 2; # the minimum that shows whether workers share a lock
pid ${directory}/nginx.pid;
error_log stderr notice;
events { worker_connections 768; }
http {
  sendfile on;
  tcp_nopush on;
  types_hash_max_size 2048;
  include /etc/nginx/mime.types;
  default_type application/octet-stream;
  ssl_protocols TLSv1 TLSv1.1 TLSv1.2 TLSv1.3;
  ssl_prefer_server_ciphers on;
  gzip on;
  access_log off;
  client_body_temp_path ${directory}/body;
  proxy_temp_path ${directory}/proxy;
  fastcgi_temp_path ${directory}/fastcgi;
  uwsgi_temp_path ${directory}/uwsgi;
  scgi_temp_path ${directory}/scgi;
  include ${directory}/darkroom.conf;
}
`;
}
