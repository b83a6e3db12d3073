import { execFileSync, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { atEnd } from '../at-end.ts';
import { tlsFiles } from '../http/tls-files.ts';
import { useTemporaryDirectory } from '../temporary-directory.ts';
import { findFreePorts } from './local-server.ts';

/** The files that we recommend; this is the one place that knows how to run them elsewhere. */
const RECOMMENDED = new URL('../../../deploy/nginx/', import.meta.url);

/** What is put into a recommended file, by the text in its place. */
type Values = Readonly<Record<string, string>>;

/**
 * Starts nginx with `darkroom.conf`. Only ports, paths and the certificate are put in, and each of them
 * must be found where it is expected; around it stands what Debian's nginx.conf has. nginx runs until the end of the
 * test, or of the file's tests.
 *
 * @param upstreamPort port of what takes Darkroom's place
 * @param isPlatform whether Darkroom stands in the platform's place
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

/**
 * Starts nginx with `darkroom-plain.conf`, the same way.
 *
 * @param upstreamPorts of the two instances that take turns
 */
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

/**
 * Starts nginx with `darkroom-replicas.conf`, the same way.
 *
 * @param replicaPorts of as many Darkrooms as it names; of any more, nginx would not find the address
 */
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

/** Starts nginx with `nginx.conf` of the platform, the same way; it has neither cache nor log of its own. */
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

/** Runs nginx with a recommended file, in which these values for three free ports are put. */
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
    // Where Debian has it, which is not in everybody's path.
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
      // It listens by then.
      if (log.includes('start worker process ')) resolve();
    });
    child.once('error', reject);
    child.once('close', () => reject(new Error(`nginx does not start: ${log}`)));
  });
  return {
    port,
    /** Port of the listener that only redirects, if it has one. */
    plainPort,
    /** Runs the purge that we recommend, on all under a path; returns its output. */
    purge: (prefix: string): string => {
      const caches = [join(directory, 'darkroom'), join(directory, 'darkroom-refused')];
      return execFileSync('deploy/nginx/purge', [prefix, ...caches], { encoding: 'utf8' });
    },
    /** Returns nginx's log so far, from level `notice` on. */
    log: () => log,
    accessLog: (): string => readFileSync(join(directory, 'access.log'), 'utf8'),
  };
}

/** What Debian's /etc/nginx/nginx.conf puts around a file of conf.d, but for paths and logs. */
function debianConfiguration(directory: string): string {
  return `
daemon off;
worker_processes 2; # auto, on the smallest of machines that show whether workers share a lock
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
