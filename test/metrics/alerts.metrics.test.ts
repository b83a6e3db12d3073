import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';

const RULES = resolve('deploy/prometheus/alerts.yaml');

/** Values of series in promtool's notation, one a minute: start, step, times. */
type Series = Readonly<Record<string, string | undefined>>;

const requests = (status: number, cache: string): string =>
  `darkroom_requests_total{resource="user avatar",status="${status}",cache="${cache}"}`;
const HITS = requests(200, 'memory');
const MISSES = requests(200, 'miss');
const refusals = (reason: string): string => `darkroom_refusals_total{reason="${reason}"}`;
const reads = (outcome: string): string => `darkroom_origin_reads_total{outcome="${outcome}"}`;
const waits = (le: string): string => `darkroom_queue_wait_seconds_bucket{lane="light",le="${le}"}`;
const writes = (outcome: string): string => `darkroom_store_writes_total{outcome="${outcome}"}`;
const cutOff = (reason: string): string => `darkroom_clients_cut_off_total{reason="${reason}"}`;
const maxBytes = (cache: string): string => `darkroom_cache_max_bytes{cache="${cache}"}`;
const LIMITED = 'darkroom_rate_limited_total{resource="custom emoji"}';
const READY_WORKERS = 'darkroom_workers_ready{lane="light"}';

/** 90 minutes of a healthy service. */
const HEALTHY: Series = {
  up: '1x90',
  darkroom_ready: '1x90',
  darkroom_origin_reachable: '1x90',
  [HITS]: '0+5400x90',
  [MISSES]: '0+600x90',
  [LIMITED]: '0+60x90',
  [requests(502, 'miss')]: '0+6x90',
  [requests(503, 'miss')]: '0+6x90',
  [refusals('light lane')]: '0+6x90',
  [refusals('memory')]: '0x90',
  [waits('1')]: '0+590x90',
  [waits('2.5')]: '0+600x90',
  [waits('+Inf')]: '0+600x90',
  [reads('found')]: '0+600x90',
  [reads('failed')]: '0+6x90',
  [reads('stopped')]: '0+600x90',
  darkroom_worker_restarts_total: '0+2x90',
  darkroom_worker_kills_total: '0+2x90',
  'darkroom_workers{lane="light"}': '2x90',
  [READY_WORKERS]: '2x90',
  [writes('written')]: '0+600x90',
  [writes('failed')]: '0+6x90',
  [maxBytes('results')]: '268435456x90',
  [maxBytes('store')]: '10737418240x90',
  darkroom_originals_max_bytes: '536870912x90',
  process_resident_memory_bytes: '1000000000x90',
  nodejs_eventloop_lag_p99_seconds: '0.02x90',
  darkroom_log_lines_lost_total: '100x90',
  [cutOff('turned away')]: '0x90',
  [cutOff('slow reader')]: '0+5x90',
  darkroom_edge_oldest_purge_seconds: '46x90',
};

const FEW_REQUESTS: Series = {
  [HITS]: '0+27x45 1215+3x44',
  [MISSES]: '0+3x45 135+27x44',
  [requests(502, 'miss')]: undefined,
  [requests(503, 'miss')]: undefined,
  [refusals('light lane')]: undefined,
  [LIMITED]: undefined,
};
const COLLAPSED = { [HITS]: '0+5400x45 243000+600x44', [MISSES]: '0+600x45 27000+5400x44' };
const KILLED = { darkroom_worker_restarts_total: '0+6x90', darkroom_worker_kills_total: '0+6x90' };

/** Differences from a healthy service, and the alert that they raise, if any. */
const cases: readonly (readonly [what: string, Series, alert?: string])[] = [
  ['nothing', {}],
  ['a service that does not respond', { up: '1x60 0x29' }, 'Down'],
  ['a service that just stopped responding', { up: '1x88 0x1' }],
  ['a service that is not ready', { darkroom_ready: '1x60 0x29' }, 'NotReady'],
  ['server errors', { [requests(500, 'miss')]: '0+120x90' }, 'ServerErrors'],
  ['client errors', { [requests(404, 'none')]: '0+9000x90' }],
  ['rejected requests', { [refusals('memory')]: '0+200x90' }, 'TurnsAway'],
  ['many rate-limited requests', { [LIMITED]: '0+600x90' }, 'ManyLimited'],
  ['renders that wait', { [waits('1')]: '0+300x90' }, 'Saturated'],
  ['an origin that fails some reads', { [reads('failed')]: '0+60x90' }, 'OriginFailing'],
  ['an origin that times out', { [reads('timeout')]: '0+60x90' }, 'OriginFailing'],
  ['an unreachable origin', { darkroom_origin_reachable: '1x60 0x29' }, 'OriginUnreachable'],
  ['workers that crash', { darkroom_worker_restarts_total: '0+3x90' }, 'WorkersDying'],
  ['workers that are killed', KILLED, 'WorkersKilled'],
  ['workers that do not restart', { [READY_WORKERS]: '2x60 1x29' }, 'WorkersMissing'],
  ['hits that collapse', COLLAPSED, 'HitRatioCollapsed'],
  ['hits that collapse under few requests', FEW_REQUESTS],
  ['a store that drops writes', { [writes('dropped')]: '0+120x90' }, 'StoreFailing'],
  ['too much memory', { process_resident_memory_bytes: '1700000000x90' }, 'MemoryHigh'],
  ['an event loop that lags', { nodejs_eventloop_lag_p99_seconds: '0.4x90' }, 'EventLoopLag'],
  ['clients turned away', { [cutOff('turned away')]: '0+5x90' }, 'ClientsTurnedAway'],
  [
    'an unreadable list of blocks',
    { darkroom_blocklist_age_seconds: '0x60 60+60x29' },
    'BlocksUnreadable',
  ],
  [
    'a pending purge at the CDN',
    { darkroom_edge_oldest_purge_seconds: '0x60 240+60x29' },
    'PurgePending',
  ],
  ['a slow reader of the log', { darkroom_log_lines_lost_total: '0+5x90' }, 'LogLosesLines'],
];

function nameSeries(name: string): string {
  const [metric, labels] = name.split('{');
  return `${metric}{job="darkroom",instance="a:9090"${labels === undefined ? '}' : `,${labels}`}`;
}

/** Runs promtool; throws its output on a failure. */
function promtool(...parameters: string[]): string {
  return execFileSync('promtool', parameters, { encoding: 'utf8', stdio: 'pipe' });
}

test('each failure raises its alert and no other, and other changes raise none', async () => {
  const tests = cases.map(([what, series, alert]) => ({
    interval: '1m',
    input_series: Object.entries({ ...HEALTHY, ...series }).flatMap(([name, values]) =>
      values === undefined ? [] : [{ series: nameSeries(name), values }],
    ),
    promql_expr_test: [
      {
        // Series that Prometheus creates for alerts; a failure shows the comment.
        expr: `count by (alertname) (ALERTS{alertstate="firing"}) # ${what}`,
        eval_time: '90m',
        exp_samples:
          alert === undefined ? [] : [{ labels: `{alertname="Darkroom${alert}"}`, value: 1 }],
      },
    ],
  }));
  const directory = await useTemporaryDirectory();
  // JSON is YAML.
  const rules = { rule_files: [RULES], evaluation_interval: '1m', tests };
  await directory.put('alerts.yaml', JSON.stringify(rules));
  promtool('test', 'rules', join(directory.path, 'alerts.yaml'));
});

test('all alerts are valid, and each is raised by a case', () => {
  const named = readFileSync(RULES, 'utf8').match(/(?<=- alert: )\w+/g) ?? [];
  expect(promtool('check', 'rules', RULES)).toContain(`SUCCESS: ${named.length} rules found`);
  const raised = cases.flatMap(([, , alert]) => (alert === undefined ? [] : [`Darkroom${alert}`]));
  expect(new Set(raised)).toEqual(new Set(named));
});
