import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePorts } from '../../test/support/processes/free-ports.ts';
import { type Service, startServer } from '../harness/service.ts';

/** Where Debian has it. */
const NGINX = '/usr/sbin/nginx';

/** What is missing for nginx to run here; `undefined` if nothing is. */
export function missingNginx(): string | undefined {
  return existsSync(NGINX) ? undefined : 'needs nginx (Debian: nginx-light)';
}

/** All files below a folder, from the page cache, by one process for each core, as Debian's nginx has it. */
export async function startStaticNginx(root: string): Promise<Service> {
  const folder = await mkdtemp(join(tmpdir(), 'darkroom-compare-nginx-'));
  const [port = 0] = await findFreePorts(1);
  const file = join(folder, 'nginx.conf');
  // Started by root, its processes would be somebody else, who cannot get at the originals.
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  const configuration = `
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
  server {
    listen 127.0.0.1:${port};
    root ${root};
    open_file_cache max=10;
  }
}
`;
  await writeFile(file, configuration);
  const command = [NGINX, '-p', folder, '-c', file];
  const service = await startServer({
    name: 'compare-nginx-static',
    command,
    port,
    deathSignal: 'TERM',
  });
  return {
    ...service,
    stop: async (graceMs) => {
      const ending = await service.stop(graceMs);
      await rm(folder, { recursive: true });
      return ending;
    },
  };
}
