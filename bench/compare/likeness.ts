import { execFileSync, spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import sharp from 'sharp';
import { useTemporaryFolder } from '../harness/service.ts';
import type { Turn } from './contest.ts';
import type { Rendering } from './originals.ts';

/** Command of PyPI's `ssimulacra2` 0.3: prints a number for two pictures; 100 means that they are equal. */
const TOOL = 'ssymulacra2';

/** Whether the tool is installed. */
export function hasLikenessTool(): boolean {
  return spawnSync(TOOL, ['--help']).error === undefined;
}

/**
 * Measures the likeness of a server's pictures to a full decode that is scaled by Lanczos3, and their size; means of
 * these renderings.
 */
export function measureLikeness(
  folder: string,
  renderings: readonly Rendering[],
  urlOf: (rendering: Rendering) => string,
): Promise<Turn> {
  return useTemporaryFolder(async (scratch) => {
    const [wanted, sent] = [join(scratch, 'wanted.png'), join(scratch, 'sent.png')];
    let [ssimulacra2, bytesEach] = [0, 0];
    for (const rendering of renderings) {
      const body = Buffer.from(await (await fetch(urlOf(rendering))).arrayBuffer());
      const decoded = await sharp(body)
        .toColourspace('srgb')
        .png()
        .toBuffer({ resolveWithObject: true });
      const { width, height } = decoded.info;
      await writeFile(sent, decoded.data);
      const whole = await sharp(join(folder, rendering.path)).autoOrient().png().toBuffer();
      const scaling = { kernel: 'lanczos3', fit: 'fill' } as const;
      await sharp(whole).resize(width, height, scaling).toFile(wanted);
      const text = execFileSync(TOOL, [wanted, sent], { encoding: 'utf8' });
      ssimulacra2 += Number(/-?\d+\.\d+/.exec(text)?.[0]) / renderings.length;
      bytesEach += body.length / renderings.length;
    }
    return { ssimulacra2, bytesEach };
  });
}
