import { type Contest, holdContest, type Player } from '../contest.ts';
import {
  type Contestant,
  darkroom,
  imageFilter,
  ipx,
  type RunningServer,
  rawSharp,
} from '../contestants.ts';
import { lineUp, type Trial } from '../line-up.ts';
import type { Originals, Rendering } from '../originals.ts';
import { describeAnswers, readServerCpuSeconds } from '../server-numbers.ts';
import { joinVipsThumbnail, missingVipsThumbnail } from '../vips-thumbnail.ts';
import type { Stage, Workload } from '../workload.ts';

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

const COLD = 'Every answer is rendered: no caches, and nothing is asked for twice.';

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
  const starters = await lineUp(stage, name, contestants, folder, pickTrial(renderings));
  const players = starters.map(({ contestant, server }) =>
    join(stage, contestant, server, options.clients, ofRound),
  );
  const missing = missingVipsThumbnail();
  if (hasVips && missing !== undefined) stage.excuse(name, 'vipsthumbnail', missing);
  if (hasVips && missing === undefined) {
    players.push(await joinVipsThumbnail(folder, ofRound, turnMs));
  }
  const measures = [
    'perSecond',
    'p50Ms',
    'p99Ms',
    'cpuSecondsPer1000',
    'peakBytes',
    'answers',
  ] as const;
  return holdContest({ name, note, measures, rounds, hasPractice: true }, players);
}

/** One for each format: the last ones, which are asked for in no round, or at the end of the last one. */
export function pickTrial(renderings: readonly Rendering[]): Trial {
  const byFormat = new Map(renderings.map((rendering) => [rendering.format, rendering]));
  return { renderings: [...byFormat.values()], isExact: true };
}

function join(
  { generator, turnMs }: Stage,
  { name, targetOf }: Contestant,
  server: RunningServer,
  clients: number,
  ofRound: (round: number) => readonly Rendering[],
): Player {
  const { origin } = server;
  return {
    name,
    play: async (round) => {
      const paths = ofRound(round).map(targetOf);
      const before = readServerCpuSeconds(server);
      const beganMs = performance.now();
      const load = { kind: 'closed', origin, clients, paths, durationMs: turnMs } as const;
      const { answers } = await generator.run(load).catch((cause: unknown) => {
        throw new Error(`${name} could not be asked to the end.`, { cause });
      });
      const seconds = (performance.now() - beganMs) / 1000;
      const wrong = answers.find(({ status }) => status !== 200);
      if (wrong !== undefined) throw new Error(`${name} answers ${wrong.status}.`);
      const latenciesMs = answers.map(({ totalMs }) => totalMs);
      return describeAnswers(server, before, latenciesMs, seconds);
    },
    leave: () => server.stop(5_000),
  };
}
