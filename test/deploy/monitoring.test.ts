import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { cacheUses } from '../../src/pipeline/cache-outcome.ts';
import { type ServiceProcess, startService } from '../support/processes/service-process.ts';
import { workersOf } from '../support/processes/worker-ids.ts';
import { listExpressions, readDashboard } from '../support/telemetry/dashboard.ts';
import { parseScrape, type Scrape } from '../support/telemetry/prometheus-text.ts';
import { makeTemporaryFolder, type TemporaryFolder } from '../support/temporary-folder.ts';

const TOKEN = 'token-of-the-administrator';

/** Labels that Prometheus adds, and those that only histograms have. */
const FOREIGN_LABELS = new Set(['job', 'instance', 'le']);

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: Readonly<Record<string, string>>;
}

const rules = (
  parse(readFileSync('deploy/prometheus/alerts.yaml', 'utf8')) as {
    readonly groups: readonly { readonly rules: readonly Rule[] }[];
  }
).groups.flatMap((group) => group.rules);

const expressions = [
  ...listExpressions(),
  ...rules.map(({ alert, expr }) => ({ title: alert, expr })),
];

/** The metrics that a PromQL expression names, with the label matchers beside each. */
function readSelectors(expr: string): { readonly name: string; readonly matchers: string }[] {
  const selectors = expr.matchAll(/\b((?:darkroom|process|nodejs)_\w+)(?:\{([^}]*)\})?/g);
  return [...selectors].map(([, name = '', matchers = '']) => ({ name, matchers }));
}

/** What an expression groups by, or joins on. */
function readGroupings(expr: string): string[] {
  return [...expr.matchAll(/\b(?:by|on|without) \(([^)]*)\)/g)]
    .flatMap(([, labels = '']) => labels.split(','))
    .map((label) => label.trim())
    .filter((label) => label !== '');
}

let service: ServiceProcess;
let store: TemporaryFolder;
let scraped: Scrape;

async function scrape(): Promise<Scrape> {
  const admin = /The admin listener is on (http:\/\/[\d.:]+)/.exec(service.output())?.[1];
  const headers = { authorization: `Bearer ${TOKEN}` };
  return parseScrape(await (await fetch(`${admin}/metrics`, { headers })).text());
}

function labelsOf(name: string): Set<string> {
  const samples = scraped.samples.filter((sample) => sample.name === name);
  return new Set(samples.flatMap(({ labels }) => Object.keys(labels)));
}

function valuesOf(name: string, label: string): Set<string | undefined> {
  const known = label === 'cache' && name === 'darkroom_requests_total' ? cacheUses : [];
  const samples = scraped.samples.filter((sample) => sample.name === name);
  return new Set([...known, ...samples.map(({ labels }) => labels[label])]);
}

beforeAll(async () => {
  store = await makeTemporaryFolder();
  service = await startService({
    ADMIN_PORT: '0',
    ADMIN_TOKEN: TOKEN,
    RESULT_STORE: 'filesystem',
    RESULT_STORE_DIR: store.path,
  });
  const { output, origin } = service;
  await vi.waitUntil(() => output().includes('The admin listener is on'));
  for (const path of ['/icons/1/ab12.webp?size=16', '/icons/1/ab12.webp?size=16', '/robots.txt']) {
    await (await fetch(origin + path)).arrayBuffer();
  }
  // Once the store has counted what it has, the requests are over, and there was garbage to collect.
  await vi.waitUntil(
    async () => {
      for (let hit = 0; hit < 50; hit += 1) {
        await (await fetch(`${origin}/icons/1/ab12.webp?size=16`)).arrayBuffer();
      }
      scraped = await scrape();
      if (!scraped.samples.some(({ name }) => name.startsWith('nodejs_gc'))) return false;
      const stored = scraped.samples.some(({ labels }) => labels.cache === 'store');
      return stored && scraped.read('darkroom_requests_total', { status: '404' }) === 1;
    },
    { timeout: 10_000, interval: 100 },
  );
});

afterAll(async () => {
  await service.stop();
  await store.remove();
});

describe('dashboard and alerts', () => {
  test('are read', () => {
    expect(listExpressions().length).toBeGreaterThan(40);
    expect(rules.length).toBeGreaterThan(10);
    expect(readSelectors('a / darkroom_x{b="c"} + process_y')).toEqual([
      { name: 'darkroom_x', matchers: 'b="c"' },
      { name: 'process_y', matchers: '' },
    ]);
  });

  test.each(expressions)('name what the service counts: $title: $expr', ({ expr }) => {
    const names = new Set(scraped.samples.map(({ name }) => name));
    const selectors = readSelectors(expr);
    expect(selectors.length + Number(expr.startsWith('up{'))).toBeGreaterThan(0);
    const grouping = new Set(readGroupings(expr));
    for (const { name, matchers } of selectors) {
      expect(names).toContain(name);
      for (const [, label = '', operator, text = ''] of matchers.matchAll(
        /(\w+)(!?[=~]~?)"([^"]*)"/g,
      )) {
        if (FOREIGN_LABELS.has(label)) continue;
        expect(labelsOf(name)).toContain(label);
        if (label === 'status' || operator?.startsWith('!')) continue;
        for (const value of text.split('|')) expect(valuesOf(name, label)).toContain(value);
      }
    }
    const labels = new Set(selectors.flatMap(({ name }) => [...labelsOf(name)]));
    for (const label of grouping) {
      if (!FOREIGN_LABELS.has(label)) expect(labels).toContain(label);
    }
  });

  test('leave out no metric of ours', () => {
    const shown = new Set(
      listExpressions().flatMap(({ expr }) => readSelectors(expr).map(({ name }) => name)),
    );
    const isShown = (name: string): boolean =>
      ['', '_bucket', '_sum', '_count'].some((part) => shown.has(name + part));
    const own = [...scraped.types.keys()].filter((name) => name.startsWith('darkroom_'));
    expect(own.length).toBeGreaterThan(30);
    expect(own.filter((name) => !isShown(name))).toEqual([]);
  });
});

describe('the dashboard', () => {
  const { panels, templating, schemaVersion } = readDashboard();

  test('is for Grafana 11 and newer, and asks which Prometheus, job and replica are meant', () => {
    expect(schemaVersion).toBeGreaterThanOrEqual(39);
    expect(templating.list.map(({ name, type }) => `${name}: ${type}`)).toEqual([
      'datasource: datasource',
      'job: query',
      'instance: query',
    ]);
    for (const { expr } of listExpressions())
      expect(expr).toMatch(/job=~"\$job",instance=~"\$instance"/);
  });

  test('has rows, and no panel over another', () => {
    const rows = panels.filter(({ type }) => type === 'row').map(({ title }) => title);
    expect(rows).toEqual([
      'At a glance',
      'Traffic',
      'Latency by stage',
      'Caches',
      'Workers',
      'Origin',
      'Clients',
      'Process',
    ]);
    const taken = new Set<string>();
    for (const { title, gridPos } of panels) {
      expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
          expect(taken, title).not.toContain(`${x} ${y}`);
          taken.add(`${x} ${y}`);
        }
      }
    }
  });
});

describe('the alerts', () => {
  test.each(rules)(
    'say what is the matter and what to do: $alert',
    ({ alert, labels, annotations }) => {
      expect(alert).toMatch(/^Darkroom[A-Z]\w+$/);
      expect(['page', 'ticket']).toContain(labels.severity);
      expect(Object.keys(annotations)).toEqual(['summary', 'description', 'runbook']);
      for (const text of Object.values(annotations)) expect(text.length).toBeGreaterThan(20);
      // Other alerts and panels that a runbook points to are there.
      const { runbook = '' } = annotations;
      for (const [name] of runbook.matchAll(/\bDarkroom[A-Z][A-Za-z]+/g)) {
        expect(rules.map((rule) => rule.alert)).toContain(name);
      }
      const titles = readDashboard().panels.map(({ title }) => title);
      for (const [, title] of runbook.matchAll(/"([A-Z][^"]+)"/g)) expect(titles).toContain(title);
    },
  );
});

describe('what happens to workers', () => {
  test.runIf(process.platform === 'linux')('is counted', async () => {
    const { pid } = service;
    const [worker] = workersOf(pid);
    expect(scraped.read('darkroom_worker_restarts_total')).toBe(0);
    expect(
      scraped.read('darkroom_worker_resident_memory_bytes', { lane: 'light' }),
    ).toBeGreaterThan(20_000_000);
    process.kill(Number(worker), 'SIGKILL');
    await expect
      .poll(
        async () => {
          const { read } = await scrape();
          return [
            read('darkroom_worker_restarts_total'),
            read('darkroom_worker_kills_total'),
            read('darkroom_workers_ready', { lane: 'light' }),
            read('darkroom_ready'),
          ];
        },
        { timeout: 10_000 },
      )
      .toEqual([1, 0, 1, 1]);
  });
});
