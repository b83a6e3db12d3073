import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findFreePorts } from '../processes/free-ports.ts';
import { createCertificate, runNginx } from '../processes/nginx.ts';
import { makeTemporaryFolder } from '../temporary-folder.ts';

/** A site that is started. */
export type NginxSite = Awaited<ReturnType<typeof startNginxSite>>;

/**
 * Starts a site of somebody else's on free ports of this machine, under a name that a resolver has to know: nginx with
 * TLS, which redirects what comes without.
 */
export async function startNginxSite(name: string) {
  const { path: folder, put, remove } = await makeTemporaryFolder();
  const [certFile, keyFile] = createCertificate(folder, [`DNS:${name}`]);
  const [securePort = 0, plainPort = 0] = await findFreePorts(2);
  const log = join(folder, 'access.log');
  mkdirSync(join(folder, 'files'));
  writeFileSync(log, '');
  const configuration = `
daemon off;
user root;
worker_processes 1;
pid ${folder}/nginx.pid;
error_log stderr warn;
events { worker_connections 256; }
http {
  include /etc/nginx/mime.types;
  large_client_header_buffers 4 16k;
  log_format asked '$request_method $request_uri $status';
  access_log ${log} asked;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  server {
    listen 127.0.0.1:${plainPort};
    return 301 https://${name}:${securePort}$request_uri;
  }
  server {
    listen 127.0.0.1:${securePort} ssl;
    server_name ${name};
    ssl_certificate ${certFile};
    ssl_certificate_key ${keyFile};
    root ${folder}/files;
    location / { }
    location /to-plain/ { rewrite ^/to-plain(.*)$ http://${name}:${plainPort}$1 redirect; }
    location /to-ip/ { rewrite ^/to-ip(.*)$ https://127.0.0.1:${securePort}$1 redirect; }
  }
}
`;
  const ports = [securePort, plainPort];
  const nginx = await runNginx(folder, configuration, ports);
  return {
    /** Scheme, name and port. */
    secure: `https://${name}:${securePort}`,
    plain: `http://${name}:${plainPort}`,
    ports,
    /** Its certificate, which no authority has issued: clients trust it where they are given it. */
    authorityFile: certFile,
    put: (file: string, bytes: Uint8Array) => put(join('files', file), bytes),
    /** What it was asked for, in order: `GET /cat.png 206`. */
    requests: () => readFileSync(log, 'utf8').split('\n').slice(0, -1),
    stop: async (): Promise<void> => {
      await nginx.stop();
      await remove();
    },
  };
}
