import { execFileSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DCLinter } from 'dclint';
import { afterAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { readConfig } from '../../src/config/config.ts';
import { settingTable } from '../../src/config/settings.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

interface Service {
  readonly environment?: Readonly<Record<string, string | number>>;
  readonly networks: Readonly<Record<string, { readonly ipv4_address: string }>>;
  readonly extra_hosts?: Readonly<Record<string, string>>;
}
interface Compose {
  readonly services: Readonly<Record<string, Service>>;
}

const text = readFileSync('deploy/compose.yaml', 'utf8');
const folder = await makeTemporaryFolder();
afterAll(folder.remove);
const secretsFile = join(folder.path, '.env');
execFileSync('deploy/secrets', [secretsFile]);
const secrets = Object.fromEntries(
  readFileSync(secretsFile, 'utf8')
    .trim()
    .split('\n')
    .map((line) => line.split('=') as [string, string]),
);
/** As Docker reads it: with the secrets in their places, and merged where it says so. */
const compose = parse(
  text.replaceAll(/\$\{(\w+):\?[^}]*\}/g, (_, name: string) => secrets[name] ?? ''),
  { merge: true },
) as Compose;
const replicas = Object.entries(compose.services).filter(([name]) => /^darkroom-\d$/.test(name));

/** As the linter reports it; its own types do not resolve. */
interface LintMessage {
  readonly type: 'error' | 'warning';
  readonly message: string;
}

/** What is wrong by the schema of Compose, and by a linter's rules for what would not work. */
function findFaults(path: string): string[] {
  // One image, which is built once and named for all.
  const rules = { 'no-build-and-image': 0 } as const;
  const linter = new DCLinter({ rules, quiet: true, debug: false, exclude: [] });
  const results: readonly { readonly messages: readonly LintMessage[] }[] = linter.lintFiles(
    [path],
    false,
  );
  return results
    .flatMap(({ messages }) => messages.filter(({ type }) => type === 'error'))
    .map(({ message }) => message);
}

describe('compose.yaml', () => {
  test('follows the Compose specification', () => {
    expect(findFaults('deploy/compose.yaml')).toEqual([]);
  });

  test('which would find a key that does not exist', async () => {
    await folder.put('compose.yaml', text.replace('healthcheck:', 'helthcheck:'));
    expect(findFaults(join(folder.path, 'compose.yaml'))).toEqual([
      expect.stringMatching(/services\/s3.*additional/),
    ]);
  });

  test('names no secret that is not made for it', () => {
    const names = [...text.matchAll(/\$\{(\w+)/g)].map(([, name]) => name);
    expect(new Set(names)).toEqual(new Set(Object.keys(secrets)));
    for (const secret of Object.values(secrets)) expect(secret).toMatch(/^(GK)?[0-9a-f]{24,64}$/);
  });

  test('has its secrets in a file that nobody else can read, and that is never written over', () => {
    expect(statSync(secretsFile).mode & 0o777).toBe(0o600);
    expect(() => execFileSync('deploy/secrets', [secretsFile], { stdio: 'pipe' })).toThrow();
    expect(readFileSync(secretsFile, 'utf8')).toContain(secrets.ADMIN_TOKEN ?? 'none');
  });

  test.each(replicas)('%s is configured as the service allows', (_, { environment = {} }) => {
    const variables = Object.fromEntries(
      Object.entries(environment).map(([name, value]) => [name, String(value)]),
    );
    expect(readConfig(variables)).toMatchObject({
      storage: { kind: 's3', bucket: 'originals' },
      resultStore: { kind: 's3', bucket: 'renderings' },
      admin: { listen: { port: 9090 } },
    });
    const unknown = Object.keys(variables).filter((name) => !(name in settingTable));
    expect(unknown.sort()).toEqual(['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']);
  });

  test('has the replicas that nginx knows, at the addresses where it looks for them', () => {
    const site = readFileSync('deploy/nginx/darkroom-replicas.conf', 'utf8');
    const known = [...site.matchAll(/^ *server (darkroom-\d):3000 /gm)].map(([, name]) => name);
    expect(known).toEqual(replicas.map(([name]) => name));
    expect(compose.services.nginx?.extra_hosts).toEqual(
      Object.fromEntries(
        replicas.map(([name, { networks }]) => [name, networks.inside?.ipv4_address]),
      ),
    );
  });
});
