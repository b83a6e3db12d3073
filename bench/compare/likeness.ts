import { execFileSync, spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import sharp from 'sharp';
import { useTemporaryFolder } from '../harness/temporary-folder.ts';
import type { Turn } from './measures.ts';
import type { Rendering } from './originals.ts';

/** PyPI `ssimulacra2` 0.3, whose command is spelled so: of two pictures it prints a number; 100 is the same. */
const TOOL = 'ssymulacra2';

/** Whether it is installed. */
export function hasLikenessTool(): boolean {
  return spawnSync(TOOL, ['--help']).error === undefined;
}

/**
 * How like its originals a server's pictures are, and how large: beside a full decode that is scaled by Lanczos3;
 * means of some renderings.
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
