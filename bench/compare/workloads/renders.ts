import { type Contest, holdContest, type Player, type Stage, type Workload } from '../contest.ts';
import { darkroom, peers } from '../contestants.ts';
import { createTrial, lineUp } from '../line-up.ts';
import type { Originals, RenderingKind } from '../originals.ts';
import { playLoad, RESPONSE_MEASURES } from '../turns.ts';

interface RenderOptions {
  readonly name: string;
  readonly kind: RenderingKind;
  readonly clients: number;
  readonly note: string;
  /** The aim beside IPX. */
  readonly timesIpx: number;
}

const COLD = 'Every response is rendered: no caches, and nothing is asked for twice.';

const photos = {
  kind: 'photos',
  note: `${COLD} Photographs of 2 to 4 megapixels, as JPEG, PNG and WebP, to a width of 512 in their own format.`,
  timesIpx: 1.3,
} as const;

const options: readonly RenderOptions[] = [
  { ...photos, name: 'photos, 2 clients', clients: 2 },
  { ...photos, name: 'photos, 8 clients', clients: 8 },
  {
    name: 'avatars',
    kind: 'avatars',
    clients: 8,
    note: `${COLD} Squares of 256 to 1024 px, as JPEG, PNG and WebP, to 16 to 256 px as WebP and PNG. 8 clients.`,
    timesIpx: 1.3,
  },
  {
    name: 'emojis',
    kind: 'emojis',
    clients: 8,
    note: `${COLD} Animations of 96 and 128 px with 12 and 24 frames, as GIF and WebP, to 20 to 80 px as both. 8 clients.`,
    timesIpx: 2,
  },
];

/** Cold renders. */
export function renderWorkloads(): readonly Workload[] {
  return options.map((of) => ({
    name: of.name,
    aims: [
      { of: 'Darkroom', to: 'raw sharp', atLeast: 0.95 },
      { of: 'Darkroom', to: 'IPX', atLeast: of.timesIpx },
    ],
    hold: (stage) => hold(stage, of),
  }));
}

async function hold(stage: Stage, of: RenderOptions): Promise<Contest> {
  const { name, kind, clients, note } = of;
  const { rounds, turnMs: durationMs } = stage;
  const { folder, [kind]: renderings }: Originals = await stage.originals();
  const share = Math.floor(renderings.length / (rounds + 1));
  const ofRound = (round: number) => renderings.slice(round * share, (round + 1) * share);
  const contestants = [darkroom, ...peers, ...stage.foreign].filter(
    ({ kinds }) => kinds === undefined || kinds.includes(kind),
  );
  const starters = await lineUp(stage, name, contestants, folder, createTrial(renderings));
  const players = starters.map(
    ({ contestant, server }): Player => ({
      name: contestant.name,
      play: async (round) => {
        const paths = ofRound(round).map(contestant.targetOf);
        const load = { kind: 'closed', clients, paths, durationMs } as const;
        return (await playLoad(stage, contestant.name, server, load)).turn;
      },
      leave: () => server.stop(),
    }),
  );
  const plan = { name, note, measures: RESPONSE_MEASURES, rounds, hasPractice: true };
  return holdContest(plan, players);
}
