import { request } from 'undici';
import { expect, test } from 'vitest';
import { medianOfThree } from '../../support/median.ts';
import { patient } from '../../support/patient.ts';
import { watchGrowth } from '../../support/processes/process-memory.ts';
import { useService } from '../../support/processes/service-process.ts';
import { SIGNING_KEY } from '../../support/signed-urls.ts';
import { useDnsServer } from '../../support/sites/dns-server.ts';
import { signedPathOf } from '../../support/sites/external-app.ts';
import { useSiteServer } from '../../support/sites/site-server.ts';

const MEBIBYTE = 1024 * 1024;
const LARGE_BYTES = 500 * MEBIBYTE;
const CONCURRENT_REQUESTS = 4;
/** Maximum growth of memory in a warm service, for 2 000 MiB that pass through. */
const ADDITIONAL_MEMORY_BYTES = 64 * MEBIBYTE;

const NAME = 'video.site.example';
/** First bytes of an MP4. The rest of the buffer takes no memory until it is written. */
const video = Buffer.alloc(LARGE_BYTES + MEBIBYTE);
video.write('\0\0\0\x18ftypmp42\0\0\0\0mp42isom', 'latin1');

const site = await useSiteServer();
for (const mebibytes of [2, 500, 501]) {
  site.serveRanges(`/${mebibytes}`, video.subarray(0, mebibytes * MEBIBYTE));
}

const service = await useService({
  EXTERNAL_SIGNING_KEYS: SIGNING_KEY,
  EXTERNAL_DNS_SERVERS: await useDnsServer({ [NAME]: ['127.0.0.1'] }),
  EXTERNAL_PORTS: String(site.port),
  EXTERNAL_ALLOWED_NETWORKS: '127.0.0.1',
  ...patient,
});
const pathOf = (mebibytes: number) => signedPathOf(`http://${NAME}:${site.port}/${mebibytes}`);

async function receive(mebibytes: number, headers = {}): Promise<number> {
  const { body } = await request(service.origin + pathOf(mebibytes), { headers });
  let received = 0;
  for await (const chunk of body) received += chunk.length;
  return received;
}

test('four concurrent passthroughs of a video of 500 MiB take constant memory', {
  timeout: 240_000,
}, async () => {
  for (let round = 0; round < 20; round += 1) await receive(2);
  const grownBytes = await medianOfThree(async () => {
    const growth = watchGrowth(service.pid);
    const received = await Promise.all(
      Array.from({ length: CONCURRENT_REQUESTS }, () => receive(500)),
    );
    expect(received).toEqual(Array(CONCURRENT_REQUESTS).fill(LARGE_BYTES));
    return growth();
  });
  expect(grownBytes).toBeLessThan(ADDITIONAL_MEMORY_BYTES);
});

test('serves a distant range of a video of 500 MiB, and rejects a longer video', async () => {
  expect(await receive(500, { range: `bytes=${LARGE_BYTES - 100}-` })).toBe(100);
  expect((await fetch(service.origin + pathOf(501))).status).toBe(422);
});
