import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { beforeAll, expect, test, vi } from 'vitest';
import { parse, stringify } from 'yaml';
import { findFreePorts } from '../support/processes/local-server.ts';
import { useService } from '../support/processes/service-process.ts';
import { listExpressions } from '../support/telemetry/dashboard.ts';
import { useTemporaryFolder } from '../support/temporary-folder.ts';

const TOKEN = 'token-of-the-administrator';

/** What is there only after something has gone wrong, or where a thing is set up that is not here. */
const MAY_BE_EMPTY = /evictions|store/;

interface Answer {
  readonly status: string;
  readonly error?: string;
  readonly data: { readonly result: readonly { readonly value: readonly [number, string] }[] };
}

interface RulesAnswer {
  readonly data: {
    readonly groups: readonly { readonly rules: readonly { readonly state: string }[] }[];
  };
}

const folder = await useTemporaryFolder();
const [adminPort = 0, port = 0] = await findFreePorts(2);
const service = await useService({ ADMIN_PORT: String(adminPort), ADMIN_TOKEN: TOKEN });
const api = `http://127.0.0.1:${port}/api/v1`;

/** The shipped configuration, for one replica on this machine, in a hurry. */
function writeConfiguration(): string {
  const shipped = parse(readFileSync('deploy/prometheus/prometheus.yaml', 'utf8'));
  const tokenFile = join(folder.path, 'token');
  writeFileSync(tokenFile, TOKEN);
  shipped.global = { scrape_interval: '500ms', evaluation_interval: '500ms' };
  shipped.rule_files = [resolve('deploy/prometheus/alerts.yaml')];
  const [darkroom] = shipped.scrape_configs;
  darkroom.authorization.credentials_file = tokenFile;
  darkroom.static_configs = [{ targets: [`127.0.0.1:${adminPort}`] }];
  const file = join(folder.path, 'prometheus.yaml');
  writeFileSync(file, stringify(shipped));
  return file;
}

async function query(expression: string): Promise<Answer> {
  const response = await fetch(`${api}/query?query=${encodeURIComponent(expression)}`);
  return (await response.json()) as Answer;
}

beforeAll(async () => {
  const file = writeConfiguration();
  execFileSync('promtool', ['check', 'config', file]); // throws where it is wrong
  const place = `--storage.tsdb.path=${join(folder.path, 'data')}`;
  const parameters = [`--config.file=${file}`, place, `--web.listen-address=127.0.0.1:${port}`];
  const prometheus = spawn('prometheus', parameters, { stdio: 'ignore' });
  const isUp = async (): Promise<boolean> =>
    query('up').then(
      ({ data }) => data.result[0]?.value[1] === '1',
      () => false,
    );
  await vi.waitUntil(isUp, { timeout: 20_000, interval: 100 });
  // Something of everything: renders, hits, errors, passthrough; twice, since a rate is between two scrapes.
  for (let round = 0; round < 2; round += 1) {
    const size = `?size=${[16, 20][round]}`;
    const images = [`/icons/1/ab12.webp${size}`, `/avatars/2/a_cd34.gif${size}`];
    const others = ['/attachments/1/14/romeo.txt', '/icons/1/none.png', '/robots.txt'];
    for (const path of [...images, ...images, ...others]) {
      await (await fetch(service.origin + path)).arrayBuffer();
    }
    await new Promise((resolve) => setTimeout(resolve, 1_500));
  }
  return async () => {
    prometheus.kill();
    await once(prometheus, 'exit');
  };
}, 60_000);

test('a real Prometheus reads the metrics, and finds the alerts inactive', async () => {
  const { data } = (await (await fetch(`${api}/rules`)).json()) as RulesAnswer;
  const rules = data.groups.flatMap((group) => group.rules);
  expect(rules.length).toBeGreaterThan(10);
  expect(new Set(rules.map(({ state }) => state))).toEqual(new Set(['inactive']));
  const ready = async () => (await query('count(darkroom_ready)')).data.result[0]?.value[1];
  await expect.poll(ready).toBe('1');
});

test.each(listExpressions())('the dashboard can show: $title: $expr', async ({ expr }) => {
  const response = await query(
    expr.replaceAll('$__rate_interval', '30s').replaceAll(/\$(job|instance)/g, '.+'),
  );
  expect([response.status, response.error]).toEqual(['success', undefined]);
  if (!MAY_BE_EMPTY.test(expr)) expect(response.data.result).not.toEqual([]);
});
