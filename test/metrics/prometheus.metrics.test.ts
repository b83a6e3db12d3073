import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { parse, stringify } from 'yaml';
import { atEnd } from '../support/at-end.ts';
import { findFreePorts } from '../support/processes/local-server.ts';
import { useService } from '../support/processes/service-process.ts';
import { listExpressions } from '../support/telemetry/dashboard.ts';
import { METRICS_TOKEN } from '../support/telemetry/prometheus-text.ts';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';

/** Expressions without data unless something failed or an optional part is configured. */
const MAY_BE_EMPTY = /evictions|store/;

const directory = await useTemporaryDirectory();
const [adminPort = 0, port = 0] = await findFreePorts(2);
const service = await useService({ ADMIN_PORT: String(adminPort), ADMIN_TOKEN: METRICS_TOKEN });
const api = `http://127.0.0.1:${port}/api/v1`;

async function query(expression: string) {
  const response = await fetch(`${api}/query?query=${encodeURIComponent(expression)}`);
  return JSON.parse(await response.text());
}

const firstValue = async (expression: string) => (await query(expression)).data.result[0]?.value[1];

// The shipped configuration, for one local replica and with short intervals.
const shipped = parse(readFileSync('deploy/prometheus/prometheus.yaml', 'utf8'));
shipped.global = { scrape_interval: '500ms', evaluation_interval: '500ms' };
shipped.rule_files = [resolve('deploy/prometheus/alerts.yaml')];
const [darkroom] = shipped.scrape_configs;
darkroom.authorization.credentials_file = join(directory.path, 'token');
darkroom.static_configs = [{ targets: [`127.0.0.1:${adminPort}`] }];
const file = join(directory.path, 'prometheus.yaml');
await directory.put('token', METRICS_TOKEN);
await directory.put('prometheus.yaml', stringify(shipped));
execFileSync('promtool', ['check', 'config', file]); // throws for an invalid configuration

const data = `--storage.tsdb.path=${join(directory.path, 'data')}`;
const parameters = [`--config.file=${file}`, data, `--web.listen-address=127.0.0.1:${port}`];
const prometheus = spawn('prometheus', parameters, { stdio: 'ignore' });
atEnd(async () => {
  prometheus.kill();
  await once(prometheus, 'exit');
});
const soon = { timeout: 20_000, interval: 100 };
await vi.waitFor(async () => expect(await firstValue('up')).toBe('1'), soon);
// Renders, hits, errors and passthrough; twice, since a rate needs two scrapes.
for (const size of [16, 20]) {
  const images = [`/icons/1/ab12.webp?size=${size}`, `/avatars/2/a_cd34.gif?size=${size}`];
  const others = ['/attachments/1/14/romeo.txt', '/icons/1/none.png', '/robots.txt'];
  for (const path of [...images, ...images, ...others]) {
    await (await fetch(service.origin + path)).arrayBuffer();
  }
  await sleep(1_500);
}

test('a real Prometheus reads the metrics, and finds the alerts inactive', async () => {
  const rules = await (await fetch(`${api}/rules`)).text();
  const states = [...rules.matchAll(/"state":"(\w+)"/g)].map(([, state]) => state);
  expect(states.length).toBeGreaterThan(10);
  expect(new Set(states)).toEqual(new Set(['inactive']));
  await expect.poll(() => firstValue('count(darkroom_ready)')).toBe('1');
});

test.each(listExpressions())('the dashboard shows: $title: $expr', async ({ expr }) => {
  const response = await query(
    expr.replaceAll('$__rate_interval', '30s').replaceAll(/\$(job|instance)/g, '.+'),
  );
  expect([response.status, response.error]).toEqual(['success', undefined]);
  if (!MAY_BE_EMPTY.test(expr)) expect(response.data.result).not.toEqual([]);
});
