import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fetchOk } from '../../harness/service.ts';
import { type Contest, holdContest, type Player, type Stage, type Workload } from '../contest.ts';
import { type Contestant, cachingDarkroom, startOwn } from '../contestants.ts';
import { lineUp } from '../line-up.ts';
import { missingNginx, startStaticNginx } from '../nginx.ts';
import type { Rendering } from '../originals.ts';
import { playLoad, RESPONSE_MEASURES } from '../turns.ts';

/** Bodies of cache hits: those of the service that come nearest are taken. */
const HIT_BYTES = [5_000, 100_000] as const;
const CLIENTS = 16;

/** Before each turn, so that what is asked for is there, and compiled what sends it. */
const WARM_UP_MS = 500;

/** A server that sends what is at hand. */
interface HitContestant extends Contestant {
  /** A header of the requests, if there is one. */
  readonly header?: string;
  /** Of the responses; 200 where nothing else is said. */
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
    known ??= measureCandidates(stage);
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
        const folder = await mkdtemp(join(tmpdir(), 'darkroom-compare-file-'));
        await writeFile(join(folder, 'file'), Buffer.alloc(sizeBytes, 7));
        const contestants = [cachingDarkroom, ...describePeers(sizeBytes, folder)];
        const note = `One response of ${sizeBytes} bytes, asked for by ${CLIENTS} clients again and again. The others send a buffer, or a file from the page cache, of that size; nginx may use all cores, the others' main process one.`;
        return hold(stage, name, note, contestants, rendering).finally(() =>
          rm(folder, { recursive: true }),
        );
      },
    };
  });
  const name = 'conditional requests';
  const conditional: Workload = {
    name,
    aims: [{ of: 'a client that has it', to: 'Darkroom', atLeast: 1 }],
    hold: async (stage) => {
      const { rendering, sizeBytes, etag } = await find(stage, HIT_BYTES[0]);
      const client = { name: 'a client that has it', header: `If-None-Match: ${etag}` };
      const contestants = [cachingDarkroom, { ...cachingDarkroom, ...client, status: 304 }];
      const note = `Darkroom alone: a hit of ${sizeBytes} bytes, and the same with the ETag of what the client has, which is a 304. ${CLIENTS} clients.`;
      return hold(stage, name, note, contestants, rendering);
    },
  };
  return [...hits, conditional];
}

/** Servers that have nothing to look up: a body of so many bytes from memory, and a file as large. */
function describePeers(bytes: number, folder: string): readonly Contestant[] {
  return [
    {
      name: 'bare Fastify',
      start: () => startOwn('fixed-server', 'fastify', String(bytes)),
      targetOf: ({ darkroomPath }) => darkroomPath,
    },
    {
      name: 'bare node:http',
      start: () => startOwn('fixed-server', 'http', String(bytes)),
      targetOf: ({ darkroomPath }) => darkroomPath,
    },
    {
      name: 'nginx static',
      missing: missingNginx,
      start: () => startStaticNginx(folder),
      targetOf: () => '/file',
    },
  ];
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
  const players = starters.map(({ contestant, server }): Player => {
    const { header, status, targetOf } = contestant;
    const load = {
      kind: 'closed',
      clients: CLIENTS,
      paths: [targetOf(rendering)],
      isRepeated: true,
      header,
    } as const;
    const play = (durationMs: number) =>
      playLoad(stage, contestant.name, server, { ...load, durationMs }, status);
    return {
      name: contestant.name,
      play: async () => {
        await play(WARM_UP_MS);
        return (await play(stage.turnMs)).turn;
      },
      leave: () => server.stop(),
    };
  });
  const measures = RESPONSE_MEASURES;
  return holdContest({ name, note, measures, rounds: stage.rounds, hasPractice: false }, players);
}

/** Bytes and ETag of some of the service's responses. */
async function measureCandidates(stage: Stage): Promise<readonly Candidate[]> {
  const { folder, photos } = await stage.originals();
  const service = await cachingDarkroom.start(folder);
  try {
    const measured: Candidate[] = [];
    for (const rendering of photos.slice(0, 20)) {
      for (const widthPx of [64, 128, 512, 900]) {
        const darkroomPath = rendering.darkroomPath.replace(/width=\d+/, `width=${widthPx}`);
        const { body, headers } = await fetchOk(service.origin, darkroomPath);
        const etag = headers.get('etag') ?? '';
        measured.push({ rendering: { ...rendering, darkroomPath }, sizeBytes: body.length, etag });
      }
    }
    return measured;
  } finally {
    await service.stop();
  }
}
