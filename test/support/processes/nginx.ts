import { execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePorts } from './free-ports.ts';

/** The files that we recommend; this is the one place that knows how to run them elsewhere. */
const RECOMMENDED = new URL('../../../deploy/nginx/', import.meta.url);

/** What the access log is called here, whatever its name where we recommend it. */
const ACCESS_LOG = 'access.log';

/** Hosts that `darkroom.conf` is asked for by. */
const CERTIFIED_NAMES = ['IP:127.0.0.1', 'DNS:cdn.example.com', 'DNS:static.example.com'];

/** How many locations have an error log of their own. */
const ERROR_LOGS = 6;

/** nginx as a process, on a port of this machine. */
export type Nginx = Awaited<ReturnType<typeof startPlainNginx>>;

/**
 * Starts nginx with `darkroom.conf`. Only ports, paths and the certificate are put in, and each of them
 * must be found where it is expected; around it stands what Debian's nginx.conf has.
 *
 * @param upstreamPort port of what takes Darkroom's place
 * @param isPlatform whether Darkroom stands in the platform's place
 */
export async function startNginx(upstreamPort: number, isPlatform = false) {
  const folder = createFolder();
  const [certFile, keyFile] = createCertificate(folder);
  const ports = await findFreePorts(5);
  const [port = 0, secondPort = 0, plainPort = 0, secondPlainPort = 0, unusedPort = 0] = ports;
  const site = new Template('darkroom.conf');
  site.put('listen 443 ssl', `listen 127.0.0.1:${port} ssl`, 2); // once in a comment
  site.put('listen [::]:443 ssl', `listen 127.0.0.1:${secondPort} ssl`);
  site.put('listen 80;', `listen 127.0.0.1:${plainPort};`);
  site.put('listen [::]:80;', `listen 127.0.0.1:${secondPlainPort};`);
  putUpstreams(site, [upstreamPort, unusedPort]);
  site.put('_is_platform { default 0; }', `_is_platform { default ${Number(isPlatform)}; }`);
  site.put('/etc/ssl/certs/darkroom.pem', certFile);
  site.put('/etc/ssl/private/darkroom.key', keyFile);
  const nginx = await run(site, port, folder);
  return {
    ...nginx,
    /** Port of the listener that only redirects. */
    plainPort,
    /** Certificate in PEM, which clients must trust. */
    certificate: readFileSync(certFile),
  };
}

/**
 * Starts nginx with `darkroom-plain.conf`, the same way.
 *
 * @param upstreamPorts of the two instances that take turns
 */
export async function startPlainNginx(upstreamPorts: readonly [number, number]) {
  const [port = 0] = await findFreePorts(1);
  const site = new Template('darkroom-plain.conf');
  site.put('listen 127.0.0.1:8080;', `listen 127.0.0.1:${port};`);
  putUpstreams(site, upstreamPorts);
  return run(site, port);
}

function putUpstreams(site: Template, [first, second]: readonly [number, number]): void {
  site.put('127.0.0.1:3000 max_fails=0;', `127.0.0.1:${first} max_fails=0;`);
  site.put('127.0.0.1:3001 max_fails=0 backup;', `127.0.0.1:${second} max_fails=0 backup;`);
}

/**
 * Starts nginx with `darkroom-replicas.conf`, the same way.
 *
 * @param replicaPorts of as many Darkrooms as it names
 */
export async function startNginxForReplicas(replicaPorts: readonly number[]) {
  const [port = 0] = await findFreePorts(1);
  const site = new Template('darkroom-replicas.conf');
  site.put('listen 8080;', `listen 127.0.0.1:${port};`);
  for (const [index, replicaPort] of replicaPorts.entries()) {
    site.put(`server darkroom-${index + 1}:3000 `, `server 127.0.0.1:${replicaPort} `);
  }
  if (/darkroom-\d/.test(site.text)) throw new Error('there are more replicas in the file');
  return run(site, port);
}

/** Starts nginx with `nginx.conf` of the platform, the same way; it has neither cache nor log of its own. */
export async function startPlatformNginx(upstreamPort: number) {
  const [port = 0] = await findFreePorts(1);
  const site = new Template('../platform/nginx.conf');
  site.put('listen 127.0.0.1:8080;', `listen 127.0.0.1:${port};`);
  site.put('127.0.0.1:3000 max_fails=0;', `127.0.0.1:${upstreamPort} max_fails=0;`);
  const folder = createFolder();
  writeFileSync(join(folder, 'darkroom.conf'), site.text);
  const nginx = await runNginx(folder, debianConfiguration(folder), [port]);
  return {
    origin: `http://127.0.0.1:${port}`,
    stop: async (): Promise<void> => {
      await nginx.stop();
      rmSync(folder, { recursive: true });
    },
  };
}

/** A recommended file, with what a machine puts into it. */
class Template {
  text: string;

  constructor(name: string) {
    this.text = readFileSync(new URL(name, RECOMMENDED), 'utf8');
  }

  /** @throws Error if it is not found as often as expected */
  put(what: string, value: string, times = 1): void {
    const parts = this.text.split(what);
    if (parts.length !== times + 1) {
      throw new Error(`expected ${times} of "${what}" but found ${parts.length - 1}`);
    }
    this.text = parts.join(value);
  }
}

function createFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'darkroom-nginx-'));
  // Started by root, the workers are another user, who must get through to the cache.
  chmodSync(folder, 0o755);
  mkdirSync(join(folder, 'cache'), { mode: 0o755 });
  return folder;
}

async function run(site: Template, port: number, folder = createFolder()) {
  site.put('/var/cache/', `${folder}/cache/`, 2);
  site.text = site.text.replace(/\/var\/log\/nginx\/\w+\.log/, join(folder, ACCESS_LOG));
  cpSync(new URL('snippets', RECOMMENDED), join(folder, 'snippets'), { recursive: true });
  const server = new Template('snippets/darkroom-server.conf');
  server.put('/var/log/nginx/error.log', 'stderr', ERROR_LOGS);
  writeFileSync(join(folder, 'snippets/darkroom-server.conf'), server.text);
  writeFileSync(join(folder, 'darkroom.conf'), site.text);
  const nginx = await runNginx(folder, debianConfiguration(folder), [port]);
  return {
    port,
    /** Runs the purge that we recommend, on all under a path; returns its output. */
    purge: (prefix: string): string => {
      const caches = [join(folder, 'cache/darkroom'), join(folder, 'cache/darkroom-refused')];
      return execFileSync('deploy/nginx/purge', [prefix, ...caches], { encoding: 'utf8' });
    },
    /** Returns nginx's log so far, from level `notice` on. */
    log: nginx.log,
    accessLog: (): string => readFileSync(join(folder, ACCESS_LOG), 'utf8'),
    stop: async (): Promise<void> => {
      await nginx.stop();
      rmSync(folder, { recursive: true });
    },
  };
}

/**
 * Runs nginx in a folder, until it is stopped.
 *
 * @param ports that it listens on
 */
async function runNginx(folder: string, configuration: string, ports: readonly number[]) {
  writeFileSync(join(folder, 'nginx.conf'), configuration);
  const child = spawn('nginx', ['-p', folder, '-c', join(folder, 'nginx.conf')], {
    // Where Debian has it, which is not in everybody's path.
    env: { PATH: `${process.env.PATH ?? ''}:/usr/sbin` },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let log = '';
  child.stderr.on('data', (chunk: Buffer) => {
    log += chunk.toString();
  });
  const ended = new Promise<void>((resolve) => {
    child.once('error', (error) => {
      log += `${error.message} (apt-get install nginx-light)`;
      resolve();
    });
    child.once('close', () => resolve());
  });
  const kill = (): void => void child.kill('SIGTERM');
  process.once('exit', kill);
  await Promise.race([Promise.all(ports.map(waitForPort)), ended]);
  if (child.exitCode !== null || child.pid === undefined) {
    throw new Error(`nginx does not start: ${log}`);
  }
  return {
    /** What it has said so far. */
    log: () => log,
    stop: async (): Promise<void> => {
      kill();
      await ended;
      process.off('exit', kill);
    },
  };
}

/** What Debian's /etc/nginx/nginx.conf puts around a file of conf.d, but for paths and logs. */
function debianConfiguration(folder: string): string {
  return `
daemon off;
worker_processes 2; # auto, on the smallest of machines that show whether workers share a lock
pid ${folder}/nginx.pid;
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
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  include ${folder}/darkroom.conf;
}
`;
}

/** Makes a certificate that is its own authority, with Debian's openssl, as files in PEM. */
function createCertificate(folder: string): readonly [certFile: string, keyFile: string] {
  const certFile = join(folder, 'cert.pem');
  const keyFile = join(folder, 'key.pem');
  const subject = [
    '-subj',
    '/CN=Darkroom tests',
    '-addext',
    `subjectAltName=${CERTIFIED_NAMES.join()}`,
  ];
  const options = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const files = ['-days', '2', '-out', certFile, '-keyout', keyFile];
  execFileSync('openssl', ['req', ...options, ...subject, ...files], { stdio: 'pipe' });
  return [certFile, keyFile];
}

/** Waits until something listens on a port of this machine. */
async function waitForPort(port: number): Promise<void> {
  for (;;) {
    const socket = connect(port, '127.0.0.1');
    const isOpen = await new Promise<boolean>((resolve) => {
      socket.once('connect', () => resolve(true));
      socket.once('error', () => resolve(false));
    });
    socket.destroy();
    if (isOpen) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
