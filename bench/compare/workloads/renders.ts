import sharp from 'sharp';
import { fetchOk } from '../../harness/service.ts';
import { compete, type Entry, type Stage, type Workload } from '../contest.ts';
import { type Contestant, darkroom, ipx, rawSharp, rawSharpApart } from '../contestants.ts';
import { measureLikeness } from '../likeness.ts';
import type { Originals, Rendering } from '../originals.ts';

/** Enough to keep every core busy. */
const CLIENTS = 8;

/** Connections of clients that open their pickers. */
export const PICKER_CLIENTS = 64;

const COLD = `Every response is rendered: no caches, and nothing is asked for twice. ${CLIENTS} clients.`;

interface RenderWorkload extends Pick<Workload, 'name' | 'aims'> {
  readonly note: string;
  readonly renderingsOf: (originals: Originals) => readonly Rendering[];
  readonly clients?: number;
}

const beside = (to: string, atLeast: number, reason?: string) =>
  ({ of: 'Darkroom', to, atLeast, reason }) as const;

/** What it costs to keep decoders in processes of their own, as Darkroom must, is raw sharp beside raw sharp apart. */
const RULES = 'it has no rules, limits, deadlines, log or counters';
const besideSharp = (atLeast: number) => beside(rawSharpApart.name, atLeast, RULES);

const photographs = (format: 'jpeg' | 'png' | 'webp', aims: Workload['aims']): RenderWorkload => ({
  name: `${format} photographs`,
  note: `${COLD} Photographs of 2 to 4 megapixels, as ${format.toUpperCase()}, to widths of 480 to 640 as WebP.`,
  renderingsOf: ({ photos }) => photos.filter(({ path }) => path.endsWith(format)),
  aims,
});

const heavyOf = ({ photos }: Originals) => photos.filter(({ path }) => !path.endsWith('jpeg'));

/** IPX lets decoders reduce as far as they can, without a filter, which takes less and is seen (SSIMULACRA2). */
const ONE_PROCESS = 'IPX hands no original to another process';
const COARSER = 'IPX has its decoder reduce without a filter: the picture is worse there';

const workloads: readonly RenderWorkload[] = [
  photographs('jpeg', [besideSharp(0.88), beside(ipx.name, 0.75, COARSER)]),
  photographs('png', [besideSharp(0.8), beside(ipx.name, 0.7, ONE_PROCESS)]),
  photographs('webp', [besideSharp(0.88), beside(ipx.name, 0.6, COARSER)]),
  {
    name: 'avatars',
    note: `${COLD} Squares of 256 to 1024 px, as JPEG, PNG and WebP, to 16 to 256 px as WebP and PNG.`,
    renderingsOf: ({ avatars }) => avatars,
    aims: [besideSharp(0.92)],
  },
  {
    name: 'emojis',
    note: `${COLD} Animations of 96 and 128 px with 12 and 24 frames, as GIF and WebP, to 20 to 80 px as both.`,
    renderingsOf: ({ emojis }) => emojis,
    aims: [besideSharp(4), beside(ipx.name, 4)],
  },
  {
    name: 'picker, cold',
    note: `Every response is rendered: no caches, and nothing is asked for twice. ${PICKER_CLIENTS} clients. Stills of the corpus and the samples, drawings and photographs, to 48 px as WebP; raw sharp encodes each once, with loss.`,
    renderingsOf: ({ picker }) => picker,
    clients: PICKER_CLIENTS,
    aims: [beside(rawSharp.name, 0.95, RULES)],
  },
  {
    name: 'all heavy',
    note: `${COLD} PNG and WebP photographs.`,
    renderingsOf: heavyOf,
    aims: [besideSharp(0.9)],
  },
  {
    name: 'all light',
    note: `${COLD} Avatars.`,
    renderingsOf: ({ avatars }) => avatars.filter(({ format }) => format === 'webp'),
    aims: [besideSharp(0.92)],
  },
  {
    name: 'half and half',
    note: `${COLD} PNG and WebP photographs and avatars in turn.`,
    renderingsOf: (originals) =>
      heavyOf(originals).flatMap((photo, index) => [photo, originals.avatars[index] ?? photo]),
    aims: [besideSharp(0.9)],
  },
];

/**
 * Cold renders.
 *
 * @param peers which take part where they were asked for: of other languages, or run by somebody else
 */
export function renderWorkloads(peers: readonly Contestant[]): readonly Workload[] {
  return workloads.map(({ name, aims, note, renderingsOf, clients = CLIENTS }) => ({
    name,
    aims,
    decidedBy: 'perSecond',
    hold: async (stage) => {
      const originals = await stage.originals();
      const renderings = renderingsOf(originals);
      const isAnimated = renderings.some((rendering) => rendering.isAnimated);
      const contestants = [darkroom, rawSharpApart, rawSharp, ipx, ...peers].filter(
        ({ knowsAnimations = true }) => knowsAnimations || !isAnimated,
      );
      const isLikenessWanted = stage.isLikenessWanted && !isAnimated;
      const { folder } = originals;
      const plan = { contest: name, folder, renderings, clients, isLikenessWanted };
      return { note, entries: await competeInRenders(stage, contestants, plan) };
    },
  }));
}

/** Has contestants render in turn, each round another part of the list. */
export function competeInRenders(
  stage: Stage,
  contestants: readonly Contestant[],
  plan: {
    readonly contest: string;
    readonly folder: string;
    readonly renderings: readonly Rendering[];
    readonly clients: number;
    readonly isLikenessWanted: boolean;
  },
): Promise<Entry[]> {
  const { folder, renderings, clients, isLikenessWanted } = plan;
  const share = Math.floor(renderings.length / (stage.rounds + 1));
  // One of each format, and for likeness some: those at the end of the list, which hardly a round comes to.
  const trial = new Map(renderings.map((rendering) => [rendering.format, rendering]));
  return compete(stage, contestants, {
    ...plan,
    tryOut: async ({ targetOf }, origin) => {
      for (const rendering of trial.values())
        await checkImage(origin, targetOf(rendering), rendering);
    },
    loadOf: ({ targetOf }, round) => {
      const paths = renderings.slice(round * share, (round + 1) * share).map(targetOf);
      return { clients, paths };
    },
    inspect: async ({ targetOf }, origin) =>
      isLikenessWanted
        ? measureLikeness(folder, renderings.slice(-8), (it) => origin + targetOf(it))
        : {},
  });
}

/** A server that sends the original, or another size, has less to do, and does not pass. */
async function checkImage(
  origin: string,
  target: string,
  { widthPx, format, isAnimated }: Rendering,
): Promise<void> {
  const { body } = await fetchOk(origin, target);
  const describe = (isMoving: boolean, name: string, width: number): string =>
    `${isMoving ? 'a moving' : 'a still'} ${name} of ${width} px`;
  const wanted = describe(isAnimated, format, widthPx);
  const facts = await sharp(body).metadata();
  const sent = describe((facts.pages ?? 1) > 1, facts.format, facts.width);
  if (sent !== wanted) throw new Error(`sends ${sent} for ${wanted}`);
}
