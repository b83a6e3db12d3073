import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Service } from '../harness/service.ts';
import { makeNginxFolder, startNginx } from './nginx.ts';

/**
 * nginx as a cache in front of a server, the same for everybody, whatever the answers say of how long they may be
 * kept. Its `Cache-Status` tells hits.
 *
 * @param keys how much shared memory the keys have, `64k` for example; it bounds what is kept
 */
export async function startAnswerCache(upstream: string, keys: string): Promise<Service> {
  const folder = await makeNginxFolder();
  await mkdir(join(folder, 'cache'));
  return startNginx(folder, {
    name: 'compare-nginx-cache',
    http: `
  proxy_cache_path ${folder}/cache levels=1:2 keys_zone=answers:${keys} use_temp_path=off;
  map $upstream_cache_status $cache_word { HIT "nginx; hit"; default "nginx; miss"; }
  upstream renderer { server ${new URL(upstream).host}; keepalive 32; }`,
    server: `
    merge_slashes off;
    location / {
      proxy_pass http://renderer;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_cache answers;
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
