import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import sharp from 'sharp';
import { measureDistance, renderReference } from '../harness/likeness.ts';
import { sumOf } from '../harness/report.ts';
import { fetchOk, useTemporaryFolder } from '../harness/service.ts';
import type { Contest, Contestant, Requirement, Stage, Turn } from './contest.ts';
import type { Originals, Rendering } from './originals.ts';
import { darkroom, ipx, type Renderer, rawSharp, rawSharpApart } from './renderers.ts';

/** Enough clients to keep every core busy. */
const CLIENTS = 8;

/** Clients that open their pickers at the same time. */
export const PICKER_CLIENTS = 64;

const COLD = 'Every response is rendered: no caches, and no rendering is requested twice.';

/** Why Darkroom is behind: raw sharp shows what rendering costs, and raw sharp apart what separate processes add. */
const RULES = 'raw sharp has no rules, limits, deadlines, log or counters';
const ONE_PROCESS = 'IPX renders in the process that serves';
const COARSER = 'the decoder of IPX reduces without a filter: its pictures are worse';

const gate = (to: Renderer, atLeast: number, reason: string): Requirement => ({
  kind: 'gate',
  to: to.name,
  atLeast,
  reason,
});

interface RenderContest extends Pick<Contest, 'name' | 'requirements'> {
  readonly note: string;
  readonly renderingsOf: (originals: Originals) => Promise<readonly Rendering[]>;
  readonly clients?: number;
}

const photographs = (
  format: 'jpeg' | 'png' | 'webp',
  ...requirements: readonly Requirement[]
): RenderContest => ({
  name: `${format} photographs`,
  note: `Photographs of 2 to 4 megapixels, as ${format.toUpperCase()}, to widths of 480 to 640 as WebP.`,
  renderingsOf: async (originals) =>
    (await originals.list('photos')).filter(({ path }) => path.endsWith(format)),
  requirements,
});

const contests: readonly RenderContest[] = [
  photographs('jpeg', gate(rawSharpApart, 0.88, RULES), gate(ipx, 0.75, COARSER)),
  photographs('png', gate(rawSharpApart, 0.8, RULES), gate(ipx, 0.7, ONE_PROCESS)),
  photographs('webp', gate(rawSharpApart, 0.88, RULES), gate(ipx, 0.6, COARSER)),
  {
    name: 'avatars',
    note: 'Squares of 256 to 1024 px, as JPEG, PNG and WebP, to 16 to 256 px as WebP and PNG.',
    renderingsOf: (originals) => originals.list('avatars'),
    requirements: [gate(rawSharpApart, 0.92, RULES)],
  },
  {
    name: 'emojis',
    note: 'Animations of 96 and 128 px with 12 and 24 frames, as GIF and WebP, to 20 to 80 px as both.',
    renderingsOf: (originals) => originals.list('emojis'),
    requirements: [gate(rawSharpApart, 4, RULES), gate(ipx, 4, ONE_PROCESS)],
  },
  {
    name: 'half and half',
    note: 'PNG and WebP photographs and avatars in turn.',
    renderingsOf: async (originals) => {
      const avatars = await originals.list('avatars');
      return (await originals.list('photos'))
        .filter(({ path }) => !path.endsWith('jpeg'))
        .flatMap((photo, index) => [photo, avatars[index] ?? photo]);
    },
    requirements: [gate(rawSharpApart, 0.9, RULES)],
  },
  {
    name: 'picker, cold',
    note: 'Stills of the corpus and the samples, drawings and photographs, to 48 px as WebP; raw sharp encodes each once, lossy.',
    renderingsOf: (originals) => originals.list('picker'),
    clients: PICKER_CLIENTS,
    requirements: [
      { kind: 'aim', to: rawSharp.name, atLeast: 0.95, reason: RULES },
      gate(rawSharp, 0.7, RULES),
    ],
  },
];

/**
 * Creates the contests of cold renders.
 *
 * @param peers servers that take part on request: of other languages, or run by somebody else
 */
export function createRenderContests(peers: readonly Renderer[]): readonly Contest[] {
  return contests.map(({ name, requirements, note, renderingsOf, clients = CLIENTS }) => ({
    name,
    requirements,
    prepare: async (stage) => {
      const renderings = await renderingsOf(stage.originals);
      const isAnimated = renderings.some((rendering) => rendering.isAnimated);
      const renderers = [darkroom, rawSharpApart, rawSharp, ipx, ...peers].filter(
        ({ isForStillsOnly = false }) => !(isForStillsOnly && isAnimated),
      );
      return {
        note: `${COLD} ${clients} clients. ${note}`,
        clients,
        isRepeated: false,
        contestants: renderers.map((renderer) =>
          createContestant(renderer, renderings, stage, stage.isLikenessWanted && !isAnimated),
        ),
      };
    },
  }));
}

/** Creates a contestant that renders; each round takes another part of the renderings. */
export function createContestant(
  { name, start, targetOf }: Renderer,
  renderings: readonly Rendering[],
  { originals: { folder } }: Pick<Stage, 'originals'>,
  isLikenessWanted = false,
): Contestant {
  // One rendering of each format; no round gets as far as the end of the list.
  const samples = new Map(renderings.map((rendering) => [rendering.format, rendering])).values();
  return {
    name,
    start: () => start(folder),
    paths: renderings.map(targetOf),
    check: async (origin) => {
      for (const sample of samples) await checkImage(origin, targetOf(sample), sample);
    },
    inspect: isLikenessWanted
      ? (origin) => measureLikeness(folder, renderings.slice(-8), origin, targetOf)
      : undefined,
  };
}

/** Rejects a server that sends the original, or another size: it would have less to do. */
async function checkImage(
  origin: string,
  target: string,
  { widthPx, format, isAnimated }: Rendering,
): Promise<void> {
  const { body } = await fetchOk(origin, target);
  const describe = (isMoving: boolean, name: string, width: number): string =>
    `${isMoving ? 'an animated' : 'a still'} ${name} of ${width} px`;
  const wanted = describe(isAnimated, format, widthPx);
  const facts = await sharp(body).metadata();
  const sent = describe((facts.pages ?? 1) > 1, facts.format, facts.width);
  if (sent !== wanted) throw new Error(`sends ${sent} instead of ${wanted}`);
}

/** Measures the size and the distance from an exact reduction of a server's pictures; means of these renderings. */
function measureLikeness(
  folder: string,
  renderings: readonly Rendering[],
  origin: string,
  targetOf: Renderer['targetOf'],
): Promise<Turn> {
  return useTemporaryFolder(async (scratch) => {
    const all: (Awaited<ReturnType<typeof measureDistance>> & { readonly bytesEach: number })[] =
      [];
    for (const rendering of renderings) {
      const { body } = await fetchOk(origin, targetOf(rendering));
      const { width, height } = await sharp(body).metadata();
      const source = readFileSync(join(folder, rendering.path));
      const reference = await renderReference(source, width, height);
      const distance = await measureDistance(reference, body, scratch);
      all.push({ ...distance, bytesEach: body.length });
    }
    const mean = (name: 'bytesEach' | 'butteraugli' | 'ssimulacra'): number =>
      sumOf(all, (each) => each[name]) / all.length;
    return {
      bytesEach: mean('bytesEach'),
      butteraugli: mean('butteraugli'),
      ssimulacra: mean('ssimulacra'),
    };
  });
}
