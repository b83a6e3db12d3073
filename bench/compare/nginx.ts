import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { REPORT_FOLDER } from '../harness/report.ts';
import { type Service, startServer } from '../harness/service.ts';

/** Where Debian (nginx-light) has it. */
export const NGINX = '/usr/sbin/nginx';

/** All files below a folder, from the page cache, by one process for each core, as Debian's nginx has it. */
export function startStaticNginx(root: string): Promise<Service> {
  const own = resolve(REPORT_FOLDER, 'compare-nginx');
  mkdirSync(own, { recursive: true });
  // Started by root, its processes would be somebody else, who cannot get at the originals.
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  const configure = (port: number): string => `
${user}
daemon off;
worker_processes ${availableParallelism()};
pid nginx.pid;
error_log stderr warn;
events { worker_connections 768; }
http {
  sendfile on;
  tcp_nopush on;
  access_log off;
  keepalive_requests 100000000;
  include /etc/nginx/mime.types;
  default_type application/octet-stream;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  server {
    listen 127.0.0.1:${port};
    root ${root};
    open_file_cache max=10;
  }
}
`;
  return startServer({
    name: 'compare-nginx-static',
    command: (port) => {
      writeFileSync(`${own}/nginx.conf`, configure(port));
      return [NGINX, '-p', own, '-c', `${own}/nginx.conf`];
    },
    deathSignal: 'TERM',
  });
}
