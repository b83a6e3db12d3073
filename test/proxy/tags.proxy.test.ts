import { join } from 'node:path';
import { expect, test } from 'vitest';
import { edgeSettings } from '../support/edges/edge-app.ts';
import { createClient } from '../support/http/http-client.ts';
import { findFreePorts } from '../support/processes/local-server.ts';
import { useNginx, usePlainNginx } from '../support/processes/nginx.ts';
import { useService } from '../support/processes/service-process.ts';
import { useTemporaryFolder } from '../support/temporary-folder.ts';

const paths = ['/icons/1/ab12.webp?size=16', '/attachments/1/14/romeo.txt', '/icons/1/none.webp'];

test('nginx passes cache tags on to a CDN before it, and hides them from clients', async () => {
  const folder = await useTemporaryFolder();
  const [port = 0] = await findFreePorts(1);
  const service = await useService({
    // Nothing is purged: no call is made.
    ...edgeSettings('fastly', { url: 'http://127.0.0.1:9' }),
    BLOCKLIST_FILE: join(folder.path, 'blocks.jsonl'),
    PORT: String(port),
  });
  const plain = await usePlainNginx(port, port);
  const facing = await useNginx(port);
  const askPlain = createClient(plain.port);
  const askFacing = createClient(facing.port, { connect: { ca: facing.certificate } });
  // From Darkroom, and from the cache of nginx.
  for (const path of [...paths, ...paths]) {
    const own = await fetch(service.origin + path);
    const tags = own.headers.get('surrogate-key');
    expect(tags?.split(' ').length, path).toBeGreaterThan(2);
    expect((await askPlain(path)).header('surrogate-key'), path).toBe(tags);
    expect((await askFacing(path)).header('surrogate-key'), path).toBe('');
  }
});
