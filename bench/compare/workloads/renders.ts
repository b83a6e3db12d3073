import { type Contest, holdContest, type Player, type Stage, type Workload } from '../contest.ts';
import { type Contestant, darkroom, imageFilter, ipx, rawSharp } from '../contestants.ts';
import { createTrial, lineUp } from '../line-up.ts';
import type { Originals, Rendering } from '../originals.ts';
import { playLoad, RESPONSE_MEASURES } from '../turns.ts';
import { joinVipsThumbnail, missingVipsThumbnail } from '../vips-thumbnail.ts';

interface RenderOptions {
  readonly name: string;
  readonly clients: number;
  readonly pick: (originals: Originals) => readonly Rendering[];
  readonly note: string;
  readonly others: readonly Contestant[];
  readonly hasVips: boolean;
  /** The aim beside IPX. */
  readonly timesIpx: number;
  readonly isForeignWanted: (contestant: Contestant) => boolean;
}

const COLD = 'Every response is rendered: no caches, and nothing is asked for twice.';

/**
 * Cold renders.
 *
 * @param knowsAnimations whether a server that somebody else runs can be asked for them
 */
export function renderWorkloads(
  knowsAnimations: (contestant: Contestant) => boolean,
): readonly Workload[] {
  const photos = {
    pick: (originals: Originals) => originals.photos,
    note: `${COLD} Photographs of 2 to 4 megapixels, as JPEG, PNG and WebP, to a width of 512 in their own format.`,
    others: [imageFilter],
    timesIpx: 1.3,
    isForeignWanted: () => true,
  };
  const options: readonly RenderOptions[] = [
    { ...photos, name: 'photos, 2 clients', clients: 2, hasVips: false },
    { ...photos, name: 'photos, 8 clients', clients: 8, hasVips: true },
    {
      name: 'avatars',
      clients: 8,
      pick: ({ avatars }) => avatars,
      note: `${COLD} Squares of 256 to 1024 px, as JPEG, PNG and WebP, to 16 to 256 px as WebP and PNG. 8 clients.`,
      others: [],
      hasVips: true,
      timesIpx: 1.3,
      isForeignWanted: () => true,
    },
    {
      name: 'emojis',
      clients: 8,
      pick: ({ emojis }) => emojis,
      note: `${COLD} Animations of 96 and 128 px with 12 and 24 frames, as GIF and WebP, to 20 to 80 px as both. 8 clients.`,
      others: [],
      hasVips: false,
      timesIpx: 2,
      isForeignWanted: knowsAnimations,
    },
  ];
  return options.map((of) => ({
    name: of.name,
    aims: [
      { of: 'Darkroom', to: 'raw sharp', atLeast: 0.95 },
      { of: 'Darkroom', to: 'IPX', atLeast: of.timesIpx },
    ],
    hold: (stage) => hold(stage, of),
  }));
}

async function hold(stage: Stage, options: RenderOptions): Promise<Contest> {
  const { name, note, pick, others, hasVips, isForeignWanted } = options;
  const { rounds, turnMs } = stage;
  const originals = await stage.originals();
  const { folder } = originals;
  const renderings = pick(originals);
  const share = Math.floor(renderings.length / (rounds + 1));
  const ofRound = (round: number): readonly Rendering[] =>
    renderings.slice(round * share, (round + 1) * share);
  const foreign = stage.foreign.filter(isForeignWanted);
  const contestants = [darkroom, rawSharp, ipx, ...others, ...foreign];
  const starters = await lineUp(stage, name, contestants, folder, createTrial(renderings));
  const players = starters.map(
    ({ contestant, server }): Player => ({
      name: contestant.name,
      play: async (round) => {
        const paths = ofRound(round).map(contestant.targetOf);
        const load = {
          kind: 'closed',
          clients: options.clients,
          paths,
          durationMs: turnMs,
        } as const;
        return (await playLoad(stage, contestant.name, server, load)).turn;
      },
      leave: () => server.stop(),
    }),
  );
  const missing = missingVipsThumbnail();
  if (hasVips && missing !== undefined) stage.noteAbsence(name, 'vipsthumbnail', missing);
  if (hasVips && missing === undefined) {
    players.push(await joinVipsThumbnail(folder, ofRound, turnMs));
  }
  return holdContest(
    { name, note, measures: RESPONSE_MEASURES, rounds, hasPractice: true },
    players,
  );
}
