import { type Contest, holdContest, type Player, type Stage, type Workload } from '../contest.ts';
import { darkroom, ipx, rawSharp } from '../contestants.ts';
import { measureLikeness } from '../likeness.ts';
import { createTrial, lineUp } from '../line-up.ts';
import type { Originals, Rendering } from '../originals.ts';
import { playLoad, RENDER_MEASURES } from '../turns.ts';

/** Enough to keep every core busy. */
const CLIENTS = 8;

const COLD = `Every response is rendered: no caches, and nothing is asked for twice. ${CLIENTS} clients.`;

interface RenderOptions {
  readonly name: string;
  readonly note: string;
  readonly renderingsOf: (originals: Originals) => readonly Rendering[];
  readonly aims: Workload['aims'];
}

const beside = (to: string, atLeast: number, reason?: string) =>
  ({ of: 'Darkroom', to, atLeast, reason }) as const;

/** Raw sharp renders where it serves: what it costs to do otherwise is in docs/performance.md. */
const APART = 'it serves and renders in one process, so no original is handed to another one';
const besideSharp = (atLeast: number) => beside(rawSharp.name, atLeast, APART);

const photographs = (format: 'jpeg' | 'png' | 'webp', aims: Workload['aims']): RenderOptions => ({
  name: `${format} photographs`,
  note: `${COLD} Photographs of 2 to 4 megapixels, as ${format.toUpperCase()}, to widths of 480 to 640 as WebP.`,
  renderingsOf: ({ photos }) => photos.filter(({ path }) => path.endsWith(format)),
  aims,
});

/** IPX lets decoders reduce as far as they can, without a filter, which takes less and is seen (SSIMULACRA2). */
const COARSER = 'IPX has its decoder reduce without a filter: the picture is worse there';

const options: readonly RenderOptions[] = [
  photographs('jpeg', [besideSharp(0.75), beside(ipx.name, 0.78, COARSER)]),
  photographs('png', [besideSharp(0.7), beside(ipx.name, 0.75, APART)]),
  photographs('webp', [besideSharp(0.88), beside(ipx.name, 0.65, COARSER)]),
  {
    name: 'avatars',
    note: `${COLD} Squares of 256 to 1024 px, as JPEG, PNG and WebP, to 16 to 256 px as WebP and PNG.`,
    renderingsOf: ({ avatars }) => avatars,
    aims: [besideSharp(0.72)],
  },
  {
    name: 'emojis',
    note: `${COLD} Animations of 96 and 128 px with 12 and 24 frames, as GIF and WebP, to 20 to 80 px as both.`,
    renderingsOf: ({ emojis }) => emojis,
    aims: [besideSharp(4), beside(ipx.name, 4)],
  },
  {
    name: 'all heavy',
    note: `${COLD} PNG and WebP photographs.`,
    renderingsOf: ({ photos }) => photos.filter(({ path }) => !path.endsWith('jpeg')),
    aims: [besideSharp(0.82)],
  },
  {
    name: 'all light',
    note: `${COLD} Avatars.`,
    renderingsOf: ({ avatars }) => avatars.filter(({ format }) => format === 'webp'),
    aims: [besideSharp(0.68)],
  },
  {
    name: 'half and half',
    note: `${COLD} PNG and WebP photographs and avatars in turn.`,
    renderingsOf: ({ photos, avatars }) =>
      photos
        .filter(({ path }) => !path.endsWith('jpeg'))
        .flatMap((photo, index) => [photo, avatars[index] ?? photo]),
    aims: [besideSharp(0.78)],
  },
];

/** Cold renders. */
export function renderWorkloads(): readonly Workload[] {
  return options.map((of) => ({ name: of.name, aims: of.aims, hold: (stage) => hold(stage, of) }));
}

async function hold(stage: Stage, { name, note, renderingsOf }: RenderOptions): Promise<Contest> {
  const { rounds, turnMs: durationMs } = stage;
  const originals = await stage.originals();
  const { folder } = originals;
  const renderings = renderingsOf(originals);
  const share = Math.floor(renderings.length / (rounds + 1));
  const ofRound = (round: number) => renderings.slice(round * share, (round + 1) * share);
  const isAnimated = renderings.some((rendering) => rendering.isAnimated);
  const contestants = [darkroom, rawSharp, ipx, ...stage.peers].filter(
    ({ knowsAnimations = true }) => knowsAnimations || !isAnimated,
  );
  const starters = await lineUp(stage, name, contestants, folder, createTrial(renderings));
  const players = starters.map(
    ({ contestant, server }): Player => ({
      name: contestant.name,
      play: async (round) => {
        const paths = ofRound(round).map(contestant.targetOf);
        const load = { kind: 'closed', clients: CLIENTS, paths, durationMs } as const;
        const turn = await playLoad(stage, contestant.name, server, load);
        const isAsked = stage.isLikenessWanted && !isAnimated;
        // Those at the end of the list: no round comes to them.
        const likeness = isAsked
          ? await measureLikeness(
              folder,
              renderings.slice(-8),
              (it) => server.origin + contestant.targetOf(it),
            )
          : {};
        return { ...turn, ...likeness };
      },
      leave: () => server.stop(),
    }),
  );
  return holdContest({ name, note, measures: RENDER_MEASURES, rounds, hasPractice: true }, players);
}
