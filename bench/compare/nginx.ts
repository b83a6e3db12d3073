import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePorts } from '../../test/support/free-ports.ts';
import { type Service, startServerOnPort } from '../harness/service.ts';

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

/** What a configuration is made of. */
interface NginxParts {
  /** In the outermost block. */
  readonly main?: string;
  readonly http?: string;
  /** In the one server. */
  readonly server: string;
  /** For the log, beside those of others. */
  readonly name: string;
}

/** A folder for its files, which may be written to before it starts. */
export function makeNginxFolder(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'darkroom-compare-nginx-'));
}

/**
 * Starts nginx with one server on a port of this machine, one process for each core, as Debian's own
 * configuration has it.
 *
 * @param folder of its own; removed with it
 */
export async function startNginx(folder: string, parts: NginxParts): Promise<Service> {
  const [port = 0] = await findFreePorts(1);
  const conf = join(folder, 'nginx.conf');
  await writeFile(conf, formatConfiguration(folder, port, parts));
  const command = [NGINX, '-p', folder, '-c', conf];
  const service = await startServerOnPort(command, port, `bench-report/${parts.name}.log`);
  return {
    ...service,
    stop: async (graceMs) => {
      const ending = await service.stop(graceMs);
      await rm(folder, { recursive: true });
      return ending;
    },
  };
}

function formatConfiguration(
  folder: string,
  port: number,
  { main = '', http = '', server }: NginxParts,
): string {
  // Started by root, its processes would be somebody else, who cannot get at the originals.
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  return `
${main}
${user}
daemon off;
worker_processes ${availableParallelism()};
pid ${folder}/nginx.pid;
error_log stderr warn;
events { worker_connections 768; }
http {
  sendfile on;
  tcp_nopush on;
  access_log off;
  keepalive_requests 100000000;
  include /etc/nginx/mime.types;
  default_type application/octet-stream;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  ${http}
  server {
    listen 127.0.0.1:${port};
    ${server}
  }
}
`;
}

/** Debian's image filter on a folder of originals: `/{width}/{path}`. */
export async function startImageFilter(folder: string): Promise<Service> {
  return startNginx(await makeNginxFolder(), {
    name: 'compare-nginx-image-filter',
    main: `load_module ${IMAGE_FILTER};`,
    server: `
    image_filter_buffer 50m;
    image_filter_jpeg_quality 80;
    image_filter_webp_quality 80;
    location ~ ^/(\\d+)/(.+)$ {
      alias ${folder}/$2;
      image_filter resize $1 -;
    }`,
  });
}

/** A file of so many bytes, `/file`, from the page cache. */
export async function startStaticNginx(bytes: number): Promise<Service> {
  const folder = await makeNginxFolder();
  await writeFile(join(folder, 'file'), Buffer.alloc(bytes, 7));
  return startNginx(folder, {
    name: 'compare-nginx-static',
    server: `root ${folder}; open_file_cache max=10;`,
  });
}

/** All files below a folder. */
export async function startFolderNginx(root: string): Promise<Service> {
  return startNginx(await makeNginxFolder(), {
    name: 'compare-nginx-static',
    server: `root ${root};`,
  });
}
