import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePorts } from '../../test/support/processes/free-ports.ts';
import { type Service, startServer } from '../harness/service.ts';

/** Where Debian has them. */
const NGINX = '/usr/sbin/nginx';
const IMAGE_FILTER = '/usr/lib/nginx/modules/ngx_http_image_filter_module.so';

/** What is missing for nginx to run here; `undefined` if nothing is. */
export function missingNginx(part?: 'image filter'): string | undefined {
  if (!existsSync(NGINX)) return 'needs nginx (Debian: nginx-light)';
  if (part === 'image filter' && !existsSync(IMAGE_FILTER)) {
    return "needs nginx's image filter (Debian: libnginx-mod-http-image-filter)";
  }
  return undefined;
}

/** What a configuration is made of; `{folder}` in it is a folder of its own. */
interface NginxParts {
  /** In the outermost block. */
  readonly main?: string;
  readonly http?: string;
  /** In the one server. */
  readonly server: string;
  /** Of its log. */
  readonly name: string;
}

/** Starts nginx with one server on a port of this machine, one process for each core, as Debian's has it. */
async function startNginx({ name, main = '', http = '', server }: NginxParts): Promise<Service> {
  const folder = await mkdtemp(join(tmpdir(), 'darkroom-compare-nginx-'));
  await mkdir(join(folder, 'cache'));
  const [port = 0] = await findFreePorts(1);
  const file = join(folder, 'nginx.conf');
  // Started by root, its processes would be somebody else, who cannot get at the originals.
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  const configuration = `
${main}
${user}
daemon off;
worker_processes ${availableParallelism()};
pid {folder}/nginx.pid;
error_log stderr warn;
events { worker_connections 768; }
http {
  sendfile on;
  tcp_nopush on;
  access_log off;
  keepalive_requests 100000000;
  include /etc/nginx/mime.types;
  default_type application/octet-stream;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  ${http}
  server {
    listen 127.0.0.1:${port};
    ${server}
  }
}
`;
  await writeFile(file, configuration.replaceAll('{folder}', folder));
  const command = [NGINX, '-p', folder, '-c', file];
  const service = await startServer({ name, command, port, deathSignal: 'TERM' });
  return {
    ...service,
    stop: async (graceMs) => {
      const ending = await service.stop(graceMs);
      await rm(folder, { recursive: true });
      return ending;
    },
  };
}

/** Debian's image filter on a folder of originals: `/{width}/{path}`. */
export function startImageFilter(originals: string): Promise<Service> {
  return startNginx({
    name: 'compare-nginx-image-filter',
    main: `load_module ${IMAGE_FILTER};`,
    server: `
    image_filter_buffer 50m;
    image_filter_jpeg_quality 80;
    image_filter_webp_quality 80;
    location ~ ^/(\\d+)/(.+)$ {
      alias ${originals}/$2;
      image_filter resize $1 -;
    }`,
  });
}

/** All files below a folder, from the page cache. */
export function startStaticNginx(root: string): Promise<Service> {
  const server = `root ${root}; open_file_cache max=10;`;
  return startNginx({ name: 'compare-nginx-static', server });
}

/**
 * nginx as a cache in front of a server, the same for each, whatever the responses say of how long they may be kept.
 * Its `Cache-Status` tells hits.
 *
 * @param keys how much shared memory the keys have, `64k` for example; it bounds what is kept
 */
export function startCachingNginx(upstream: string, keys: string): Promise<Service> {
  return startNginx({
    name: 'compare-nginx-cache',
    http: `
  proxy_cache_path {folder}/cache levels=1:2 keys_zone=responses:${keys} use_temp_path=off;
  map $upstream_cache_status $cache_word { HIT "nginx; hit"; default "nginx; miss"; }
  upstream renderer { server ${new URL(upstream).host}; keepalive 32; }`,
    server: `
    merge_slashes off;
    location / {
      proxy_pass http://renderer;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_cache responses;
      proxy_cache_key $request_uri;
      proxy_cache_valid 200 1d;
      proxy_ignore_headers Cache-Control Expires Set-Cookie Vary;
      proxy_cache_lock on;
      proxy_cache_lock_age 60s;
      proxy_cache_lock_timeout 60s;
      proxy_hide_header Cache-Status;
      add_header Cache-Status $cache_word;
    }`,
  });
}
