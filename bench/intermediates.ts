import { readFileSync } from 'node:fs';
import sharp from 'sharp';
import { parseTarget } from '../src/contract/media-request.ts';
import { readImageFacts } from '../src/formats/read-image-facts.ts';
import { planMedia } from '../src/pipeline/render/plan.ts';
import type { RenderJob } from '../src/pipeline/render/render-job.ts';
import { render } from '../src/workers/child/render.ts';
import { setUpSharp } from '../src/workers/child/sharp-setup.ts';
import { resize } from '../src/workers/child/transform.ts';
import { formatBytes, formatMs, formatTable } from './harness/markdown.ts';
import { quantile } from './harness/quantile.ts';

/*
 * `npm run bench:intermediates`: would it pay to keep what an avatar was decoded to, for its other sizes?
 * One core, in this process; the contestants take turns.
 */

/** What clients ask of one avatar. */
const SIZES = [32, 64, 80, 128, 256];
const ROUNDS = 15;
const PHOTO = 'fixtures/originals/attachments/1/12/red-panda.jpg';
const LIMITS = { maxInputPixels: 1e8, maxFrames: 1, maxResultBytes: 1e8, timeoutMs: 15_000 };

interface Contest {
  /** CPU of all sizes, in milliseconds, round by round. */
  readonly fromOriginal: number[];
  readonly fromDecoded: number[];
  readonly fromReduced: number[];
}

async function createAvatar(format: 'jpeg' | 'png' | 'webp', edgePx: number): Promise<Buffer> {
  return sharp(readFileSync(PHOTO)).resize(edgePx, edgePx).toFormat(format).toBuffer();
}

function planJob(original: Uint8Array, size: number): RenderJob {
  const facts = readImageFacts(original);
  const target = parseTarget(`/avatars/1/ab12.webp?size=${size}`);
  if (facts === undefined || target.kind !== 'media') throw new Error('this is no avatar');
  const plan = planMedia(facts, target.request, LIMITS);
  if (plan.kind !== 'render') throw new Error(`there is nothing to render: ${plan.kind}`);
  return plan.job;
}

/** Pixels as they are kept: decoded, and reduced to a width if there is one. */
async function decode(original: Uint8Array, widthPx?: number) {
  const image = sharp(original);
  if (widthPx !== undefined) image.resize(widthPx, widthPx, { fastShrinkOnLoad: false });
  const { data, info } = await image.raw().toBuffer({ resolveWithObject: true });
  return { data, raw: { width: info.width, height: info.height, channels: info.channels } };
}

async function timeCpu(work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

async function compete(original: Buffer): Promise<Contest> {
  const jobs = SIZES.map((size) => planJob(original, size));
  const contest: Contest = { fromOriginal: [], fromDecoded: [], fromReduced: [] };
  const fromPixels = async (widthPx?: number): Promise<void> => {
    const { data, raw } = await decode(original, widthPx);
    for (const job of jobs) {
      await resize(sharp(data, { raw }), job).toFormat(job.format, job.encoder).toBuffer();
    }
  };
  for (let round = 0; round < ROUNDS; round += 1) {
    contest.fromOriginal.push(
      await timeCpu(async () => {
        for (const job of jobs) await render(original, job);
      }),
    );
    contest.fromDecoded.push(await timeCpu(() => fromPixels()));
    contest.fromReduced.push(await timeCpu(() => fromPixels(Math.max(...SIZES))));
  }
  return contest;
}

setUpSharp();
const rows: (string | number)[][] = [];
for (const format of ['jpeg', 'png', 'webp'] as const) {
  for (const edgePx of [320, 512, 1024]) {
    const original = await createAvatar(format, edgePx);
    const { fromOriginal, fromDecoded, fromReduced } = await compete(original);
    const median = (values: number[]): number => quantile(values, 0.5) ?? 0;
    const base = median(fromOriginal);
    rows.push([
      `${format}, ${edgePx} px`,
      formatBytes(original.length),
      formatMs(base),
      (median(fromDecoded) / base).toFixed(2),
      formatBytes((await decode(original)).data.length),
      (median(fromReduced) / base).toFixed(2),
      formatBytes((await decode(original, Math.max(...SIZES))).data.length),
    ]);
  }
}
const head = ['Avatar', 'bytes', `${SIZES.length} sizes, CPU`];
const ofDecoded = ['from its pixels', 'which take'];
const ofReduced = [`from ${Math.max(...SIZES)} px of it`, 'which take'];
process.stdout.write(`${formatTable([...head, ...ofDecoded, ...ofReduced], rows)}\n`);
