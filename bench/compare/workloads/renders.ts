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

/** What raw sharp does in one process, which is all that can be: see docs/performance.md. */
const LEVEL = beside(rawSharp.name, 0.97);

const photographs = (format: 'jpeg' | 'png' | 'webp', aims: Workload['aims']): RenderOptions => ({
  name: `${format} photographs`,
  note: `${COLD} Photographs of 2 to 4 megapixels, as ${format.toUpperCase()}, to widths of 480 to 640 as WebP.`,
  renderingsOf: ({ photos }) => photos.filter(({ path }) => path.endsWith(format)),
  aims,
});

/** IPX lets decoders reduce as far as they can, without a filter, which takes less and is seen (SSIMULACRA2). */
const COARSER = 'IPX has its decoder reduce without a filter: the picture is worse there';

const options: readonly RenderOptions[] = [
  photographs('jpeg', [LEVEL, beside(ipx.name, 0.85, COARSER)]),
  photographs('png', [LEVEL, beside(ipx.name, 0.95)]),
  photographs('webp', [LEVEL, beside(ipx.name, 0.85, COARSER)]),
  {
    name: 'avatars',
    note: `${COLD} Squares of 256 to 1024 px, as JPEG, PNG and WebP, to 16 to 256 px as WebP and PNG.`,
    renderingsOf: ({ avatars }) => avatars,
    aims: [LEVEL],
  },
  {
    name: 'emojis',
    note: `${COLD} Animations of 96 and 128 px with 12 and 24 frames, as GIF and WebP, to 20 to 80 px as both.`,
    renderingsOf: ({ emojis }) => emojis,
    aims: [LEVEL, beside(ipx.name, 1)],
  },
  {
    name: 'all heavy',
    note: `${COLD} PNG and WebP photographs.`,
    renderingsOf: ({ photos }) => photos.filter(({ path }) => !path.endsWith('jpeg')),
    aims: [LEVEL],
  },
  {
    name: 'all light',
    note: `${COLD} Avatars.`,
    renderingsOf: ({ avatars }) => avatars.filter(({ format }) => format === 'webp'),
    aims: [LEVEL],
  },
  {
    name: 'half and half',
    note: `${COLD} PNG and WebP photographs and avatars in turn.`,
    renderingsOf: ({ photos, avatars }) =>
      photos
        .filter(({ path }) => !path.endsWith('jpeg'))
        .flatMap((photo, index) => [photo, avatars[index] ?? photo]),
    aims: [LEVEL],
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
