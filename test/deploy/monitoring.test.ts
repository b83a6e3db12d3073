import { readFileSync } from 'node:fs';
import { describe, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { cacheUses } from '../../src/pipeline/request-trace.ts';
import { useService } from '../support/processes/service-process.ts';
import { workersOf } from '../support/processes/worker-ids.ts';
import { listExpressions, readDashboard } from '../support/telemetry/dashboard.ts';
import { metricsSettings, parseScrape, withToken } from '../support/telemetry/prometheus-text.ts';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';

/** Labels that Prometheus adds, or that only histograms have. */
const FOREIGN_LABELS = new Set(['job', 'instance', 'le']);

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: Readonly<Record<string, string>>;
}

const { groups } = parse(readFileSync('deploy/prometheus/alerts.yaml', 'utf8')) as {
  readonly groups: readonly { readonly rules: readonly Rule[] }[];
};
const rules = groups.flatMap((group) => group.rules);
const shown = listExpressions().map(({ expr }) => expr);

const readSelectors = (expr: string) =>
  [...expr.matchAll(/\b((?:darkroom|process|nodejs)_\w+)(?:\{([^}]*)\})?/g)].map(
    ([, name = '', matchers = '']) => ({
      name,
      matchers: [...matchers.matchAll(/(\w+)(!?[=~]~?)"([^"]*)"/g)]
        .map(([, label = '', operator = '', text = '']) => ({ label, operator, text }))
        .filter(({ label }) => !FOREIGN_LABELS.has(label)),
    }),
  );

const readGroupings = (expr: string): string[] =>
  [...expr.matchAll(/\b(?:by|on|without) \(([^)]*)\)/g)]
    .flatMap(([, labels = '']) => labels.match(/\w+/g) ?? [])
    .filter((label) => !FOREIGN_LABELS.has(label));

const service = await useService({
  ...metricsSettings,
  RESULT_STORE: 'filesystem',
  RESULT_STORE_DIR: (await useTemporaryDirectory()).path,
});

async function scrape() {
  const [, admin] = /The admin listener is on (http:\/\/[\d.:]+)/.exec(service.output()) ?? [];
  return parseScrape(await (await fetch(`${admin}/metrics`, { headers: withToken })).text());
}

/** Metrics after a sweep of the result store and a garbage collection. */
const scraped = await vi.waitFor(
  async () => {
    for (let time = 0; time < 50; time += 1) {
      for (const path of ['/icons/1/ab12.webp?size=16', '/robots.txt']) {
        await (await fetch(service.origin + path)).arrayBuffer();
      }
    }
    const latest = await scrape();
    expect(latest.samples.map(({ name }) => name)).toContainEqual(
      expect.stringMatching(/^nodejs_gc/),
    );
    expect(latest.samples.map(({ labels }) => labels.cache)).toContain('store');
    return latest;
  },
  { timeout: 20_000, interval: 100 },
);

describe('dashboard and alerts', () => {
  test('use metrics, labels and values of the service', () => {
    const expressions = [...shown, ...rules.map(({ expr }) => expr)];
    expect(expressions.length).toBeGreaterThan(50);
    for (const expr of expressions) {
      const selectors = readSelectors(expr);
      if (!expr.startsWith('up{')) expect(selectors, expr).not.toHaveLength(0);
      const labels = new Map<string, Set<string>>();
      for (const { name, matchers } of selectors) {
        const series = scraped.samples.filter((sample) => sample.name === name);
        expect(series, `${name} in ${expr}`).not.toHaveLength(0);
        for (const [label, value] of series.flatMap((each) => Object.entries(each.labels))) {
          labels.set(label, (labels.get(label) ?? new Set()).add(value));
        }
        // Not all of these values have occurred.
        if (name === 'darkroom_requests_total') labels.set('cache', new Set(cacheUses));
        for (const { label, operator, text } of matchers) {
          expect([...labels.keys()], expr).toContain(label);
          if (label === 'status' || operator.startsWith('!')) continue;
          for (const value of text.split('|')) expect(labels.get(label), expr).toContain(value);
        }
      }
      for (const label of readGroupings(expr)) expect([...labels.keys()], expr).toContain(label);
    }
  });

  test('include all metrics of Darkroom', () => {
    const named = new Set(shown.flatMap((expr) => readSelectors(expr).map(({ name }) => name)));
    const own = [...scraped.types.keys()].filter((name) => name.startsWith('darkroom_'));
    const parts = ['', '_bucket', '_sum', '_count'];
    expect(own.length).toBeGreaterThan(30);
    expect(own.filter((name) => !parts.some((part) => named.has(name + part)))).toEqual([]);
  });

  test('reference each other: each runbook names existing alerts and panels', () => {
    const titles = readDashboard().panels.map(({ title }) => title);
    const alerts = rules.map(({ alert }) => alert);
    for (const { alert, labels, annotations } of rules) {
      expect(['page', 'ticket'], alert).toContain(labels.severity);
      expect(Object.keys(annotations), alert).toEqual(['summary', 'description', 'runbook']);
      for (const text of Object.values(annotations)) expect(text.length).toBeGreaterThan(20);
      const { runbook = '' } = annotations;
      for (const [name] of runbook.matchAll(/\bDarkroom[A-Z][A-Za-z]+/g)) {
        expect(alerts).toContain(name);
      }
      for (const [, title] of runbook.matchAll(/"([A-Z][^"]+)"/g)) expect(titles).toContain(title);
    }
  });
});

test('the dashboard has variables for Prometheus, job and replica', () => {
  const { templating, schemaVersion } = readDashboard();
  expect(schemaVersion).toBeGreaterThanOrEqual(39); // Grafana 11
  const variables = templating.list.map(({ name, type }) => `${name}: ${type}`);
  expect(variables).toEqual(['datasource: datasource', 'job: query', 'instance: query']);
  for (const expr of shown) expect(expr).toContain('job=~"$job",instance=~"$instance"');
});

test('the Kubernetes autoscaler uses an existing metric', () => {
  const text = readFileSync('deploy/kubernetes/prometheus-adapter-rules.yaml', 'utf8');
  const series = new Set(text.match(/darkroom_\w+_(?:sum|count)/g));
  expect(series.size).toBe(2);
  for (const name of series) {
    expect(scraped.samples).toContainEqual(
      expect.objectContaining({ name, labels: { lane: 'light' } }),
    );
  }
  const name = /as: (\w+)/.exec(text)?.[1];
  const autoscaler = readFileSync('deploy/kubernetes/horizontal-pod-autoscaler.yaml', 'utf8');
  expect(JSON.stringify(parse(autoscaler))).toContain(`"metric":{"name":"${name}"}`);
});

test('events of workers are counted', async () => {
  const [worker] = workersOf(service.pid);
  const light = { lane: 'light' };
  const bytes = scraped.read('darkroom_worker_resident_memory_bytes', light);
  expect(bytes).toBeGreaterThan(20_000_000);
  expect(scraped.read('darkroom_worker_restarts_total')).toBe(0);
  process.kill(Number(worker), 'SIGKILL');
  const counts = async () => {
    const { read } = await scrape();
    const totals = ['restarts', 'kills'].map((what) => read(`darkroom_worker_${what}_total`));
    return [...totals, read('darkroom_workers_ready', light), read('darkroom_ready')];
  };
  await expect.poll(counts).toEqual([1, 0, 1, 1]);
});
