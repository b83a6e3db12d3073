import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { type Contest, contestHits, contestRenders } from './compare/contest.ts';
import { darkroom, fixedServer, ipx, rawSharp } from './compare/contestants.ts';
import { makeOriginals, type Originals, type Rendering } from './compare/originals.ts';
import { type Aim, formatContests, judgeAims } from './compare/report.ts';
import { get, HttpClient } from './harness/exchange.ts';
import { LoadGenerator } from './harness/load-generator.ts';
import { startService } from './harness/service.ts';

/** Beside the code, and not part of the repository. */
const REPORT_FOLDER = 'bench-report';

const RENDERERS = [darkroom, rawSharp, ipx];

/** Bodies of cache hits: those of the service that come nearest are taken. */
const HIT_BYTES = [5_000, 100_000];
const HIT_CLIENTS = 16;

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '8' },
    rounds: { type: 'string', default: '3' },
    /** Part of a contest's name: only these. */
    only: { type: 'string', default: '' },
  },
});
const rounds = Number(values.rounds);
const turnMs = Number(values.seconds) * 1000;
if (!(rounds >= 1 && turnMs > 0)) throw new Error('--rounds, --seconds: expected numbers above 0');
const isWanted = (name: string): boolean => name.includes(values.only);

/** `npm run bench -- --seconds 8 --rounds 3 --only avatars`: see the README. */
async function main(): Promise<number> {
  mkdirSync(REPORT_FOLDER, { recursive: true });
  const originals = await makeOriginals();
  try {
    const contests = [...(await renderAll(originals)), ...(await hitAll(originals))];
    const aims = judgeAims(
      contests,
      listAims().filter(({ contest }) => isWanted(contest)),
    );
    const command = ['npm run bench --', ...process.argv.slice(2)].join(' ');
    const report = formatContests(contests, aims, readVersions(), command);
    writeFileSync(`${REPORT_FOLDER}/compare.md`, report);
    process.stdout.write(`${report}\nWritten to ${REPORT_FOLDER}/compare.md\n`);
    return aims.every(({ ratio, atLeast }) => ratio !== undefined && ratio >= atLeast) ? 0 : 1;
  } finally {
    await originals.remove();
  }
}

function listAims(): readonly Aim[] {
  const renders = ['photos, 2 clients', 'photos, 8 clients', 'avatars', 'emojis'];
  const hits = HIT_BYTES.map((bytes) => `hits of ${bytes / 1000} kB`);
  return [
    ...renders.flatMap((contest) => [
      { contest, of: 'Darkroom', to: 'raw sharp', atLeast: 0.95 },
      { contest, of: 'Darkroom', to: 'IPX', atLeast: contest === 'emojis' ? 2 : 1.3 },
    ]),
    ...hits.map((contest) => ({ contest, of: 'Darkroom', to: 'bare Fastify', atLeast: 0.85 })),
    {
      contest: 'conditional requests',
      of: 'a client that has it',
      to: 'Darkroom',
      atLeast: 1,
    },
  ];
}

async function renderAll({ folder, photos, avatars, emojis }: Originals): Promise<Contest[]> {
  const contests: Contest[] = [];
  const generator = new LoadGenerator('equal');
  try {
    for (const { name, renderings, clients } of [
      { name: 'photos, 2 clients', renderings: photos, clients: 2 },
      { name: 'photos, 8 clients', renderings: photos, clients: 8 },
      { name: 'avatars', renderings: avatars, clients: 8 },
      { name: 'emojis', renderings: emojis, clients: 8 },
    ]) {
      if (!isWanted(name)) continue;
      const shared = { folder, contestants: RENDERERS, rounds, turnMs, generator };
      contests.push(await contestRenders({ name, renderings, clients, ...shared }));
    }
  } finally {
    generator.close();
  }
  return contests;
}

async function hitAll({ folder, photos }: Originals): Promise<Contest[]> {
  const names = [...HIT_BYTES.map((bytes) => `hits of ${bytes / 1000} kB`), 'conditional requests'];
  if (!names.some(isWanted)) return [];
  const candidates = await measureAnswers(folder, photos);
  const shared = { folder, clients: HIT_CLIENTS, rounds, turnMs };
  const contests: Contest[] = [];
  const keeping = {
    ...darkroom,
    start: (storage: string) =>
      startService({ STORAGE_DIR: storage }, `${REPORT_FOLDER}/compare-darkroom-hits.log`),
  };
  for (const [index, bytes] of [...HIT_BYTES, HIT_BYTES[0] ?? 0].entries()) {
    const name = names[index] ?? '';
    if (!isWanted(name)) continue;
    const { rendering, sizeBytes, etag } = nearest(candidates, bytes);
    const others = [fixedServer('fastify', sizeBytes), fixedServer('http', sizeBytes)];
    const asker = { name: 'a client that has it', header: `If-None-Match: ${etag}`, status: 304 };
    const isConditional = index === HIT_BYTES.length;
    const contestants = [keeping, ...(isConditional ? [{ ...keeping, ...asker }] : others)];
    contests.push(await contestHits({ ...shared, name, contestants, rendering }));
  }
  return contests;
}

/** Bytes and ETag of some of the service's answers. */
async function measureAnswers(folder: string, renderings: readonly Rendering[]) {
  const service = await startService(
    { STORAGE_DIR: folder },
    `${REPORT_FOLDER}/compare-darkroom-hits.log`,
  );
  const client = new HttpClient(service.origin);
  try {
    const measured = [];
    for (const rendering of renderings.slice(0, 20)) {
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

function nearest<Candidate extends { readonly sizeBytes: number }>(
  candidates: readonly Candidate[],
  bytes: number,
): Candidate {
  const distance = ({ sizeBytes }: Candidate): number => Math.abs(sizeBytes - bytes);
  return candidates.reduce((one, other) => (distance(other) < distance(one) ? other : one));
}

function readVersions(): Record<string, string> {
  const of = (name: string): string =>
    (JSON.parse(readFileSync(`node_modules/${name}/package.json`, 'utf8')) as { version: string })
      .version;
  return {
    Node: process.version,
    sharp: of('sharp'),
    IPX: of('ipx'),
    'its sharp': of('ipx/node_modules/sharp'),
    Fastify: of('fastify'),
  };
}

process.exitCode = await main();
