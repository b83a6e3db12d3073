import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { runDarkroom, startDarkroom } from '../support/processes/command-line.ts';
import { useTemporaryFolder } from '../support/temporary-folder.ts';

/** What is rendered, and what the command says of it. */
const rendered = {
  '/avatars/1/ab12.webp?size=80': /^200, image\/webp, 80 x 107 px, 2\.8 KiB \(\d+\) to /,
  '/emojis/1473333333333333334.gif?size=64': /^200, image\/gif, 64 x \d+ px, \d+ frames, /,
  '/avatars/3.png': /^200, image\/png, 256 x 256 px, /,
  '/attachments/1/14/romeo.txt': /^200, text\/plain; charset=utf-8, 942 bytes \(942\) to /,
  '/attachments/1475555555555555556/1476666666666666667/my%20photo%20%C3%A9.png?width=40&format=webp':
    /^200, image\/webp, 40 x \d+ px, /,
};

test('darkroom serve is the service, and darkroom render writes the bytes that it sends', async () => {
  const serving = startDarkroom(['serve'], { PORT: '0', WORKERS: '1' });
  onTestFinished(() => void serving.child.kill('SIGKILL'));
  const links = () => serving.stderr().match(/http:\S+\?\S+/g) ?? [];
  await expect.poll(() => links().length).toBe(3);
  const output = join((await useTemporaryFolder()).path, 'output');
  for (const [target, report] of Object.entries(rendered)) {
    const { status, stdout, stderr } = await runDarkroom(['render', target, output]);
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout.toString()).toMatch(report);
    const response = await fetch(new URL(target, links()[0]));
    expect(readFileSync(output).equals(Buffer.from(await response.arrayBuffer()))).toBe(true);
  }
  serving.child.kill('SIGTERM');
  expect(await serving.ended).toBe(0);
});
