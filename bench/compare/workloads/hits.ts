import { get, HttpClient } from '../../harness/exchange.ts';
import { type Contest, holdContest, type Player } from '../contest.ts';
import {
  type Contestant,
  fileNginx,
  fixedServer,
  keepingDarkroom,
  type RunningServer,
} from '../contestants.ts';
import { askAgainAndAgain } from '../hit-load.ts';
import { lineUp } from '../line-up.ts';
import type { Rendering } from '../originals.ts';
import { describeAnswers, readServerCpuSeconds } from '../server-numbers.ts';
import type { Stage, Workload } from '../workload.ts';

/** Bodies of cache hits: those of the service that come nearest are taken. */
const HIT_BYTES = [5_000, 100_000] as const;
const CLIENTS = 16;

/** Before each turn, so that what is asked for is there, and compiled what sends it. */
const WARM_UP_MS = 500;

/** Somebody who sends what is at hand. */
interface HitContestant extends Contestant {
  /** A header of the requests, if there is one. */
  readonly header?: string;
  /** Of the answers; 200 where nothing else is said. */
  readonly status?: number;
}

interface Candidate {
  readonly rendering: Rendering;
  readonly sizeBytes: number;
  readonly etag: string;
}

/** Cache hits, and conditional requests for the smaller of them. */
export function hitWorkloads(): readonly Workload[] {
  let known: Promise<readonly Candidate[]> | undefined;
  const find = async (stage: Stage, bytes: number): Promise<Candidate> => {
    known ??= measureAnswers(stage);
    const distance = ({ sizeBytes }: Candidate): number => Math.abs(sizeBytes - bytes);
    return (await known).reduce((one, other) => (distance(other) < distance(one) ? other : one));
  };
  const hits = HIT_BYTES.map((bytes): Workload => {
    const name = `hits of ${bytes / 1000} kB`;
    return {
      name,
      aims: [{ of: 'Darkroom', to: 'bare Fastify', atLeast: 0.85 }],
      hold: async (stage) => {
        const { rendering, sizeBytes } = await find(stage, bytes);
        const others = [fixedServer('fastify', sizeBytes), fixedServer('http', sizeBytes)];
        const contestants = [keepingDarkroom, ...others, fileNginx(sizeBytes)];
        const note = `One answer of ${sizeBytes} bytes, asked for by ${CLIENTS} clients again and again. The others send a buffer, or a file from the page cache, of that size; nginx may use all cores, the others' main process one.`;
        return hold(stage, name, note, contestants, rendering);
      },
    };
  });
  const name = 'conditional requests';
  const conditional: Workload = {
    name,
    aims: [{ of: 'a client that has it', to: 'Darkroom', atLeast: 1 }],
    hold: async (stage) => {
      const { rendering, sizeBytes, etag } = await find(stage, HIT_BYTES[0]);
      const asker = { name: 'a client that has it', header: `If-None-Match: ${etag}`, status: 304 };
      const contestants = [keepingDarkroom, { ...keepingDarkroom, ...asker }];
      const note = `Darkroom alone: a hit of ${sizeBytes} bytes, and the same with the ETag of what the client has, which is a 304. ${CLIENTS} clients.`;
      return hold(stage, name, note, contestants, rendering);
    },
  };
  return [...hits, conditional];
}

async function hold(
  stage: Stage,
  name: string,
  note: string,
  contestants: readonly HitContestant[],
  rendering: Rendering,
): Promise<Contest> {
  const { folder } = await stage.originals();
  const trial = { renderings: [rendering], isExact: false };
  const starters = await lineUp(stage, name, contestants, folder, trial);
  const players = starters.map(({ contestant, server }) =>
    join(contestant, server, rendering, stage.turnMs),
  );
  const measures = [
    'perSecond',
    'p50Ms',
    'p99Ms',
    'cpuSecondsPer1000',
    'peakBytes',
    'answers',
  ] as const;
  return holdContest({ name, note, measures, rounds: stage.rounds, hasPractice: false }, players);
}

function join(
  { name, header, status = 200, targetOf }: HitContestant,
  server: RunningServer,
  rendering: Rendering,
  turnMs: number,
): Player {
  const { origin } = server;
  const head = `GET ${targetOf(rendering)} HTTP/1.1${header === undefined ? '' : `\r\n${header}`}`;
  const load = { clients: CLIENTS, status };
  return {
    name,
    play: async () => {
      await askAgainAndAgain(origin, head, { ...load, durationMs: WARM_UP_MS });
      const before = readServerCpuSeconds(server);
      const result = await askAgainAndAgain(origin, head, { ...load, durationMs: turnMs });
      return describeAnswers(server, before, result.latenciesMs, result.seconds);
    },
    leave: () => server.stop(5_000),
  };
}

/** Bytes and ETag of some of the service's answers. */
async function measureAnswers(stage: Stage): Promise<readonly Candidate[]> {
  const { folder, photos } = await stage.originals();
  const service = await keepingDarkroom.start(folder);
  const client = new HttpClient(service.origin);
  try {
    const measured: Candidate[] = [];
    for (const rendering of photos.slice(0, 20)) {
      for (const widthPx of [64, 128, 512, 900]) {
        const darkroomPath = rendering.darkroomPath.replace(/width=\d+/, `width=${widthPx}`);
        const { body, headers } = await client.ask(get(darkroomPath));
        const etag = headers.etag ?? '';
        measured.push({ rendering: { ...rendering, darkroomPath }, sizeBytes: body.length, etag });
      }
    }
    return measured;
  } finally {
    client.close();
    await service.stop(5_000);
  }
}
