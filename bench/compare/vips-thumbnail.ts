import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { OutputFormat } from '../../src/contract/image-formats.ts';
import { readProcess } from '../harness/process-numbers.ts';
import type { Player } from './contest.ts';
import type { Turn } from './measures.ts';
import type { Rendering } from './originals.ts';

/** Where Debian has it. */
const PROGRAM = '/usr/bin/vipsthumbnail';

/** So many images are rendered by one process: its start is hardly felt. */
const IMAGES_PER_PROCESS = 12;

const OUTPUTS: Partial<Record<OutputFormat, string>> = {
  jpeg: 'jpg[Q=80,strip]',
  png: 'png[strip]',
  webp: 'webp[Q=80,strip]',
};

/** What is missing for it to run here; `undefined` if nothing is. */
export function missingVipsThumbnail(): string | undefined {
  return existsSync(PROGRAM) ? undefined : 'needs vipsthumbnail (Debian: libvips-tools)';
}

/**
 * Debian's libvips with nothing around it: one process for each core, one thread each, from file to file.
 * It serves no client, and so has no latencies.
 */
export async function joinVipsThumbnail(
  folder: string,
  renderings: (round: number) => readonly Rendering[],
  turnMs: number,
): Promise<Player> {
  const output = await mkdtemp(join(tmpdir(), 'darkroom-compare-vips-'));
  return {
    name: 'vipsthumbnail, no server',
    play: (round) => render(folder, output, batch(renderings(round)), turnMs),
    leave: () => rm(output, { recursive: true }),
  };
}

async function render(
  folder: string,
  output: string,
  batches: readonly (readonly Rendering[])[],
  turnMs: number,
): Promise<Turn> {
  const cpuBefore = readEndedCpuSeconds();
  const beganMs = performance.now();
  let next = 0;
  let rendered = 0;
  const runLane = async (_: unknown, index: number): Promise<void> => {
    const own = join(output, String(index));
    await mkdir(own, { recursive: true });
    while (performance.now() - beganMs < turnMs) {
      const images = batches[next];
      if (images === undefined) return;
      next += 1;
      await runProgram(folder, own, images);
      rendered += images.length;
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, runLane));
  const cpuSeconds = readEndedCpuSeconds() - cpuBefore;
  return {
    perSecond: (rendered * 1000) / (performance.now() - beganMs),
    cpuSecondsPer1000: (cpuSeconds * 1000) / rendered,
    responses: rendered,
  };
}

/** Images of one size and format, since a process takes them once; in the order they come. */
function batch(renderings: readonly Rendering[]): Rendering[][] {
  const open: Record<string, Rendering[]> = {};
  return renderings.flatMap((rendering) => {
    const kind = `${rendering.format} ${rendering.widthPx}`;
    const images = [...(open[kind] ?? []), rendering];
    const isFull = images.length === IMAGES_PER_PROCESS;
    open[kind] = isFull ? [] : images;
    return isFull ? [images] : [];
  });
}

async function runProgram(
  folder: string,
  output: string,
  images: readonly Rendering[],
): Promise<void> {
  const [first] = images;
  const form = first && OUTPUTS[first.format];
  if (form === undefined) throw new Error('vipsthumbnail has no form for this format.');
  const options = ['--size', `${first?.widthPx}x`, '--output', join(output, `%s.${form}`)];
  const files = images.map(({ path }) => join(folder, path));
  await promisify(execFile)(PROGRAM, [...options, ...files], { env: { VIPS_CONCURRENCY: '1' } });
}

/** Of what this process has started and seen end: nothing else ends meanwhile. */
function readEndedCpuSeconds(): number {
  return readProcess(process.pid)?.endedChildrenCpuSeconds ?? 0;
}
