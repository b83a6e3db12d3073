import { spawnSync } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { useService } from '../../support/processes/service-process.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

const hasBubblewrap =
  spawnSync('bwrap', ['--unshare-user', '--ro-bind', '/', '/', 'true']).status === 0;

/** A decoder that needs a shell, which bubblewrap's sandboxes lack. */
const SCRIPTED_DECODER = `#!/bin/sh
case "$*" in
  -decoders) printf ' V....D %s any\\n' h264 hevc vp8 vp9 libdav1d ;;
  *) cat >/dev/null && printf 'YUV4MPEG2 W16 H16 F25:1 C420jpeg\\nFRAME\\n' && head -c 384 /dev/zero ;;
esac
`;

const start = (environment: Record<string, string>) =>
  spawnSync(process.execPath, ['dist/main.js'], {
    env: { PORT: '0', REQUIRE_CONFINEMENT: 'true', ...environment },
    encoding: 'utf8',
    timeout: 20_000,
  });

test('a service that requires confinement does not start without the programs for it', () => {
  const { status, stderr } = start({ PATH: '/nowhere' });
  expect(stderr).toMatch(/REQUIRE_CONFINEMENT is true\. Render workers are confined in part /);
  expect(stderr).toContain('use the network');
  expect(stderr).toContain('bubblewrap: bwrap is not installed');
  expect(status).toBe(78);
});

test.skipIf(!hasBubblewrap)(
  '(bubblewrap works) a service that requires confinement starts, and logs its sandbox',
  async () => {
    const service = await useService({ REQUIRE_CONFINEMENT: 'true' });
    await expect.poll(service.output).toContain('Render workers are confined whole (bubblewrap)');
  },
);

test.skipIf(!hasBubblewrap)(
  '(bubblewrap works) a service that requires confinement rejects a video decoder without the full sandbox',
  async () => {
    const { path } = await useTemporaryDirectory();
    const VIDEO_DECODER = join(path, 'decoder');
    writeFileSync(VIDEO_DECODER, SCRIPTED_DECODER, { mode: 0o755 });
    const settings = { VIDEO_DECODER, VIDEO_DECODER_CONFINEMENT: 'best' };
    for (const [REQUIRE_CONFINEMENT, line] of [
      ['true', `Videos have no posters: ${VIDEO_DECODER} cannot be used: bubblewrap: `],
      ['false', 'confined in part (setpriv): if compromised, it could use the network'],
    ] as const) {
      const service = await useService({ ...settings, REQUIRE_CONFINEMENT });
      await expect.poll(service.output).toContain(line);
    }
  },
);

test('a service that does not require confinement logs what is missing', async () => {
  const { path } = await useTemporaryDirectory();
  symlinkSync('/bin/sh', join(path, 'sh'));
  const service = await useService({ PATH: path });
  await expect.poll(service.output).toMatch(/"level":40.*Render workers are confined in part/);
});
