import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { useTemporaryFolder } from '../support/temporary-folder.ts';

const RULES = resolve('deploy/prometheus/alerts.yaml');

type Series = Readonly<Record<string, string | undefined>>;

const answers = (status: number, cache: string): string =>
  `darkroom_requests_total{resource="user avatar",status="${status}",cache="${cache}"}`;
const FROM_MEMORY = answers(200, 'memory');
const RENDERED = answers(200, 'miss');

/** An hour and a half of a service that is well, a value a minute, in promtool's notation: start, step, times. */
const WELL: Series = {
  up: '1x90',
  darkroom_ready: '1x90',
  darkroom_origin_reachable: '1x90',
  [FROM_MEMORY]: '0+5400x90',
  [RENDERED]: '0+600x90',
  [answers(502, 'miss')]: '0+6x90',
  [answers(503, 'miss')]: '0+6x90',
  'darkroom_refusals_total{reason="light lane"}': '0+6x90',
  'darkroom_refusals_total{reason="memory"}': '0x90',
  'darkroom_rate_limited_total{resource="custom emoji"}': '0+60x90',
  'darkroom_queue_wait_seconds_bucket{lane="light",le="1"}': '0+590x90',
  'darkroom_queue_wait_seconds_bucket{lane="light",le="2.5"}': '0+600x90',
  'darkroom_queue_wait_seconds_bucket{lane="light",le="+Inf"}': '0+600x90',
  'darkroom_origin_reads_total{outcome="found"}': '0+600x90',
  'darkroom_origin_reads_total{outcome="failed"}': '0+6x90',
  'darkroom_origin_reads_total{outcome="stopped"}': '0+600x90',
  darkroom_worker_restarts_total: '0+2x90',
  darkroom_worker_kills_total: '0+2x90',
  'darkroom_workers{lane="light"}': '2x90',
  'darkroom_workers_ready{lane="light"}': '2x90',
  'darkroom_store_writes_total{outcome="written"}': '0+600x90',
  'darkroom_store_writes_total{outcome="failed"}': '0+6x90',
  'darkroom_cache_max_bytes{cache="results"}': '268435456x90',
  'darkroom_cache_max_bytes{cache="store"}': '10737418240x90',
  darkroom_originals_max_bytes: '536870912x90',
  process_resident_memory_bytes: '1000000000x90',
  nodejs_eventloop_lag_p99_seconds: '0.02x90',
  'darkroom_clients_cut_off_total{reason="turned away"}': '0x90',
  'darkroom_clients_cut_off_total{reason="slow reader"}': '0+5x90',
  darkroom_log_lines_lost_total: '100x90',
};

const FEW_REQUESTS: Series = {
  [FROM_MEMORY]: '0+27x45 1215+3x44',
  [RENDERED]: '0+3x45 135+27x44',
  [answers(502, 'miss')]: undefined,
  [answers(503, 'miss')]: undefined,
  'darkroom_refusals_total{reason="light lane"}': undefined,
  'darkroom_rate_limited_total{resource="custom emoji"}': undefined,
};

/** What is different from a service that is well, and the alert that it raises. */
const cases: readonly (readonly [string, Series, readonly string[]])[] = [
  ['nothing', {}, []],
  ['it does not respond', { up: '1x60 0x29' }, ['DarkroomDown']],
  ['it has just begun not to', { up: '1x88 0x1' }, []],
  ['it is not ready', { darkroom_ready: '1x60 0x29' }, ['DarkroomNotReady']],
  ['server errors', { [answers(500, 'miss')]: '0+120x90' }, ['DarkroomServerErrors']],
  ['wrong requests', { [answers(404, 'none')]: '0+9000x90' }, []],
  [
    'requests that are turned away',
    { 'darkroom_refusals_total{reason="memory"}': '0+200x90' },
    ['DarkroomTurnsAway'],
  ],
  [
    'many that have had their share',
    { 'darkroom_rate_limited_total{resource="custom emoji"}': '0+600x90' },
    ['DarkroomManyLimited'],
  ],
  [
    'renders that wait',
    { 'darkroom_queue_wait_seconds_bucket{lane="light",le="1"}': '0+300x90' },
    ['DarkroomSaturated'],
  ],
  [
    'an origin that fails some reads',
    { 'darkroom_origin_reads_total{outcome="failed"}': '0+60x90' },
    ['DarkroomOriginFailing'],
  ],
  [
    'an origin that is late',
    { 'darkroom_origin_reads_total{outcome="timeout"}': '0+60x90' },
    ['DarkroomOriginFailing'],
  ],
  [
    'an origin that does not respond',
    { darkroom_origin_reachable: '1x60 0x29' },
    ['DarkroomOriginUnreachable'],
  ],
  ['workers that crash', { darkroom_worker_restarts_total: '0+3x90' }, ['DarkroomWorkersDying']],
  [
    'workers that are killed',
    { darkroom_worker_restarts_total: '0+6x90', darkroom_worker_kills_total: '0+6x90' },
    ['DarkroomWorkersKilled'],
  ],
  [
    'workers that do not come back',
    { 'darkroom_workers_ready{lane="light"}': '2x60 1x29' },
    ['DarkroomWorkersMissing'],
  ],
  [
    'hits that collapse',
    { [FROM_MEMORY]: '0+5400x45 243000+600x44', [RENDERED]: '0+600x45 27000+5400x44' },
    ['DarkroomHitRatioCollapsed'],
  ],
  ['hits that collapse where hardly anybody asks', FEW_REQUESTS, []],
  [
    'a store that does not keep what it is given',
    { 'darkroom_store_writes_total{outcome="dropped"}': '0+120x90' },
    ['DarkroomStoreFailing'],
  ],
  [
    'memory beyond what all may take',
    { process_resident_memory_bytes: '1700000000x90' },
    ['DarkroomMemoryHigh'],
  ],
  [
    'an event loop that lags',
    { nodejs_eventloop_lag_p99_seconds: '0.4x90' },
    ['DarkroomEventLoopLag'],
  ],
  [
    'clients that are turned away',
    { 'darkroom_clients_cut_off_total{reason="turned away"}': '0+5x90' },
    ['DarkroomClientsTurnedAway'],
  ],
  [
    'a log that is read too slowly',
    { darkroom_log_lines_lost_total: '0+5x90' },
    ['DarkroomLogLosesLines'],
  ],
];

/** With the labels that Prometheus adds. */
function nameSeries(name: string): string {
  const [metric, labels] = name.split('{');
  const own = labels === undefined ? '}' : `,${labels}`;
  return `${metric}{job="darkroom",instance="a:9090"${own}`;
}

/** Runs promtool; what it says where it finds a fault is thrown. */
function promtool(...parameters: string[]): string {
  return execFileSync('promtool', parameters, { encoding: 'utf8', stdio: 'pipe' });
}

async function testRules(series: Series, alerts: readonly string[]): Promise<void> {
  const file = join((await useTemporaryFolder()).path, 'alerts.yaml');
  const input = Object.entries({ ...WELL, ...series }).flatMap(([name, values]) =>
    values === undefined ? [] : [{ series: nameSeries(name), values }],
  );
  // What Prometheus itself keeps of alerts.
  const firing = 'count by (alertname) (ALERTS{alertstate="firing"})';
  const expected = alerts.map((name) => ({ labels: `{alertname="${name}"}`, value: 1 }));
  // JSON is YAML.
  const rulesTest = JSON.stringify({
    rule_files: [RULES],
    evaluation_interval: '1m',
    tests: [
      {
        interval: '1m',
        input_series: input,
        promql_expr_test: [{ expr: firing, eval_time: '90m', exp_samples: expected }],
      },
    ],
  });
  writeFileSync(file, rulesTest);
  promtool('test', 'rules', file);
}

describe('the alerts', () => {
  test('are rules of good form', () => {
    expect(promtool('check', 'rules', RULES)).toMatch(/SUCCESS: 17 rules found/);
  });

  test.each(cases)('%s', (_, series, alerts) => testRules(series, alerts));

  test('are all raised by one of these', () => {
    const { groups } = parse(readFileSync(RULES, 'utf8')) as {
      readonly groups: readonly { readonly rules: readonly { readonly alert: string }[] }[];
    };
    const named = groups.flatMap(({ rules }) => rules.map(({ alert }) => alert));
    expect(new Set(cases.flatMap(([, , alerts]) => alerts))).toEqual(new Set(named));
  });

  test('would be missed here if they were not raised', async () => {
    await expect(testRules({}, ['DarkroomDown'])).rejects.toThrow(/FAILED/);
    await expect(testRules({ up: '0x90' }, [])).rejects.toThrow(/FAILED/);
  });
});
