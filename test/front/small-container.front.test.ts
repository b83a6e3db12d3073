import { spawnSync } from 'node:child_process';
import { cp } from 'node:fs/promises';
import sharp from 'sharp';
import { expect, test } from 'vitest';
import { useMemoryGroup } from '../support/processes/memory-group.ts';
import { useService } from '../support/processes/service-process.ts';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';

const MEBIBYTE = 2 ** 20;
const hasFfmpeg = spawnSync('ffmpeg', ['-version']).status === 0;

/** Detailed originals of 24 megapixels in all formats that sharp writes; a phone's HEIC has 12. */
async function putLargeStills(put: (name: string, bytes: Uint8Array) => Promise<void>) {
  const noise = { type: 'gaussian', mean: 128, sigma: 8 } as const;
  const create = { width: 1500, height: 1000, channels: 3, background: '#888', noise } as const;
  const raw = await sharp({ create }).resize(6000, 4000).raw().toBuffer();
  const still = sharp(raw, { raw: { width: 6000, height: 4000, channels: 3 } });
  const files = {
    'a.jpg': still.clone().jpeg({ quality: 90, progressive: true, chromaSubsampling: '4:4:4' }),
    'b.jpg': still.clone().jpeg({ quality: 90 }),
    'a.png': still.clone().png({ progressive: true, compressionLevel: 1, palette: true }),
    'a.webp': still.clone().webp({ effort: 0 }),
    'a.avif': still.clone().avif({ effort: 0, chromaSubsampling: '4:2:0' }),
  };
  for (const [name, file] of Object.entries(files)) {
    await put(`attachments/9/1/${name}`, await file.toBuffer());
  }
  return Object.keys(files);
}

test('renders large stills, an emoji and posters in a container of 512 MiB without OOM kills', async (context) => {
  const group = useMemoryGroup(512 * MEBIBYTE);
  if (group === undefined) return context.skip('takes a cgroup with a limit of memory, as root');
  const { path, put } = await useTemporaryDirectory();
  await cp('fixtures/originals', path, { recursive: true });
  const stills = await putLargeStills(put);
  await cp('fixtures/corpus/heic/filetype__fixture-heic.heic', `${path}/attachments/9/1/a.heic`);
  const { origin, output } = await useService(
    // A 503 on a busy machine does not indicate a lack of memory.
    { STORAGE_DIR: path, TRANSFORM_TIMEOUT_MS: '120000' },
    group,
  );
  expect(output()).toContain(`"totalBytes":${512 * MEBIBYTE}`);

  const statusOf = async (url: string): Promise<number> => {
    const response = await fetch(`${origin}${url}`);
    await response.arrayBuffer();
    return response.status;
  };
  const large = [...stills, 'a.heic'].map((name) => `/attachments/9/1/${name}?format=webp`);
  const singles = [
    '/emojis/1473333333333333334.gif?size=64',
    ...large.map((url) => `${url}&width=400`),
    ...(hasFfmpeg ? ['/attachments/1/15/clip.mp4?format=webp&width=200'] : []),
  ];
  // In the second round, most responses are hits.
  for (const url of [...singles, ...singles]) {
    expect(await statusOf(url), url).toBe(200);
    expect(group.countKills(), url).toBe(0);
  }
  expect(group.takePeak()).toBeGreaterThan(0);

  for (const url of large.slice(-3)) {
    const crowd = Array.from({ length: 30 }, (_, index) => statusOf(`${url}&width=${300 + index}`));
    const statuses = await Promise.all(crowd);
    expect([200, 422, 503], url).toEqual(expect.arrayContaining([...new Set(statuses)]));
    expect(statuses, url).toContain(200);
    expect(group.countKills(), url).toBe(0);
  }
  const mixed = Array.from({ length: 30 }, (_, index) =>
    statusOf(`${large[index % large.length]}&width=${500 + index}`),
  );
  expect([200, 422, 503]).toEqual(expect.arrayContaining([...new Set(await Promise.all(mixed))]));
  expect(group.countKills()).toBe(0);
  expect(output()).not.toMatch(/"ending":"SIGKILL"(?!.*"reason")/);
  expect(await statusOf(singles[0] ?? '')).toBe(200);
});
