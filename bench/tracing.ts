import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { askAgainAndAgain } from './compare/hit-load.ts';
import { formatTable } from './harness/markdown.ts';
import { readCpuSeconds } from './harness/process-numbers.ts';
import { quantile } from './harness/quantile.ts';
import { startService } from './harness/service.ts';

/*
 * `npm run bench:tracing`: what a hit in memory costs of CPU, with traces and without. The contestants take turns;
 * one client asks as soon as it is answered, so that no span is dropped for want of room.
 */

const ROUNDS = 7;
const DURATION_MS = 4_000;
const WARM_UP_MS = 1_500;
const PATH = '/icons/1/ab12.webp?size=64';
const PARENT = 'traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

/** Settings of each contestant, and what its client sends along. */
interface Contestant {
  readonly settings: Readonly<Record<string, string>>;
  readonly header?: string;
}

/** Takes what it is sent, and looks no further: its CPU is not measured, but it shares the machine. */
async function startCollector() {
  let batches = 0;
  const server = createServer((request, response) => {
    batches += 1;
    request.resume().once('end', () => response.writeHead(200).end());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    takeBatches: () => {
      const taken = batches;
      batches = 0;
      return taken;
    },
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

const collector = await startCollector();
const on = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
const contestants: Readonly<Record<string, Contestant>> = {
  'no traces': { settings: {} },
  'none recorded': { settings: { ...on, OTEL_TRACES_SAMPLER: 'always_off' } },
  'one of a hundred recorded': {
    settings: { ...on, OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.01' },
  },
  'all recorded': { settings: { ...on, OTEL_TRACES_SAMPLER: 'always_on' } },
  "all recorded, in the client's trace": {
    settings: { ...on, OTEL_TRACES_SAMPLER: 'always_on' },
    header: PARENT,
  },
};

/** CPU of the service for a thousand hits, in milliseconds, the sending of their spans included. */
async function measure({ settings, header }: Contestant, folder: string) {
  const logFile = join(folder, 'log');
  const service = await startService({ WORKERS: '1', EXPLORER: 'off', ...settings }, logFile);
  const head = `GET ${PATH} HTTP/1.1${header === undefined ? '' : `\r\n${header}`}`;
  const load = { clients: 1, status: 200 };
  await askAgainAndAgain(service.origin, head, { ...load, durationMs: WARM_UP_MS });
  collector.takeBatches();
  const before = readCpuSeconds(service.pid).main;
  const { answers } = await askAgainAndAgain(service.origin, head, {
    ...load,
    durationMs: DURATION_MS,
  });
  await sleep(200);
  const cpuSeconds = readCpuSeconds(service.pid).main - before;
  const batches = collector.takeBatches();
  await service.stop(5_000);
  if (readFileSync(logFile, 'utf8').includes('Dropped')) throw new Error('spans were dropped');
  return { cpuMs: (cpuSeconds * 1e6) / answers, answers, batches };
}

const folder = mkdtempSync(join(tmpdir(), 'darkroom-bench-'));
try {
  const measured = new Map<string, Awaited<ReturnType<typeof measure>>[]>();
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [name, contestant] of Object.entries(contestants)) {
      measured.set(name, [...(measured.get(name) ?? []), await measure(contestant, folder)]);
    }
  }
  const rows = [...measured].map(([name, rounds]) => {
    const cpuMs = rounds.map((round) => round.cpuMs).sort((a, b) => a - b);
    const total = (count: (round: (typeof rounds)[number]) => number): string =>
      String(rounds.reduce((sum, round) => sum + count(round), 0));
    return [
      name,
      (quantile(cpuMs, 0.5) ?? 0).toFixed(1),
      `${cpuMs[0]?.toFixed(1)} to ${cpuMs.at(-1)?.toFixed(1)}`,
      total(({ answers }) => answers),
      total(({ batches }) => batches),
    ];
  });
  const heads = ['', 'CPU ms per 1 000 hits, median', 'of all rounds', 'hits', 'batches of spans'];
  process.stdout.write(`${formatTable(heads, rows)}\n`);
} finally {
  rmSync(folder, { recursive: true });
  collector.close();
}
