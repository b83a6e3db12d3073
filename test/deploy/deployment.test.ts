import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, statSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Model } from '@kubernetes-models/base';
import { DCLinter } from 'dclint';
import ipaddr from 'ipaddr.js';
import { Deployment, type IDeployment } from 'kubernetes-models/apps/v1/Deployment';
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler';
import {
  type INetworkPolicy,
  NetworkPolicy,
} from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicy';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget';
import { Service } from 'kubernetes-models/v1/Service';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { readConfig } from '../../src/config/config.ts';
import { settingTable } from '../../src/config/settings.ts';
import { startService } from '../support/processes/service-process.ts';
import { startFlags } from '../support/processes/start-flags.ts';
import { faultsOf } from '../support/setting-faults.ts';
import { metricsSettings } from '../support/telemetry/prometheus-text.ts';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';

const read = (name: string): string => readFileSync(name, 'utf8');

function readVariables(lines: readonly string[]): Record<string, string> {
  const set = lines.filter((line) => line !== '' && !line.startsWith('#'));
  return Object.fromEntries(set.map((line) => line.split('=') as [string, string]));
}

describe('the image', () => {
  const readInstruction = (pattern: RegExp): string[] =>
    JSON.parse(pattern.exec(read('Dockerfile'))?.[1] ?? '[]');

  test('starts Node with the flags of npm start', () => {
    const command = readInstruction(/^CMD (\[.+\])$/m);
    expect(command).toEqual(['node', ...startFlags, 'dist/main.js']);
  });

  test('has a health check that fails once the service has stopped', async () => {
    const service = await startService({ ...metricsSettings, VIDEO_DECODER: 'off' });
    const [, adminPort = ''] = /admin listener is on \S+:(\d+)/.exec(service.output()) ?? [];
    const [, ...parameters] = readInstruction(/^HEALTHCHECK [^[]+CMD (\[.+\])$/m);
    const check = (env: Record<string, string>) =>
      spawnSync(process.execPath, parameters, { env }).status;
    // Without an admin listener, the check requests the public one. No service listens on port 1.
    const { ADMIN_TOKEN } = metricsSettings;
    const ports = [
      { PORT: new URL(service.origin).port },
      { ADMIN_TOKEN, ADMIN_PORT: adminPort, PORT: '1' },
    ];
    expect(ports.map(check)).toEqual([0, 0]);
    await service.stop();
    expect(ports.map(check)).toEqual([1, 1]);
  });
});

describe('the systemd unit', () => {
  const unit = read('deploy/systemd/darkroom@.service');
  const settingOf = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1];
  const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0;

  test.skipIf(!hasSystemd)('passes systemd-analyze verify', async () => {
    const { path, put } = await useTemporaryDirectory();
    const file = 'darkroom@.service';
    // Node may be in another directory than the unit expects.
    await put(file, unit.replace('ExecStart=node ', `ExecStart=${process.execPath} `));
    const { output } = spawnSync('systemd-analyze', ['verify', join(path, file)]);
    expect(output.join('')).toBe('');
  });

  const existing = { STORAGE_DIR: 'fixtures/originals', RESULT_STORE_DIR: 'docs' };

  test('has no token: the service starts only after you set one', () => {
    const shared = readVariables(read('deploy/systemd/darkroom.env').split('\n'));
    const faults = faultsOf({ ...shared, ADMIN_PORT: '9090', ...existing });
    expect(faults).toEqual([
      'ADMIN_TOKEN: expected a token, since ADMIN_PORT is set but received nothing',
    ]);
  });

  test.each([
    ['blue', 3000, 9090],
    ['green', 3001, 9091],
  ])('starts %s with flags and settings that the service accepts', (name, port, adminPort) => {
    expect(settingOf('ExecStart')).toBe(`node ${startFlags.join(' ')} dist/main.js`);
    const { listen, admin, shutdown } = readConfig({
      ...readVariables(read('deploy/systemd/darkroom.env').split('\n')),
      ...readVariables(read(`deploy/systemd/${name}.env`).split('\n')),
      ...existing,
      ADMIN_TOKEN: 'x'.repeat(32),
    });
    expect([listen.port, admin?.listen.port]).toEqual([port, adminPort]);
    expect(Number(settingOf('TimeoutStopSec')) * 1000).toBeGreaterThan(shutdown.graceMs);
  });
});

describe('compose.yaml', () => {
  interface ComposeService {
    readonly environment?: Readonly<Record<string, string | number>>;
    readonly networks: Readonly<Record<string, { readonly ipv4_address: string }>>;
    readonly extra_hosts?: Readonly<Record<string, string>>;
  }
  const text = read('deploy/compose.yaml');

  const servicesOf = (file: string) =>
    (parse(file, { merge: true }) as { services: Readonly<Record<string, ComposeService>> })
      .services;

  const variablesOf = ({ environment = {} }: ComposeService): Record<string, string> =>
    Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, String(value)]));

  /** Returns the errors by the schema of Compose, and by rules for mistakes that the schema allows. */
  function findFaults(path: string): string[] {
    // All services use the image that one of them builds.
    const rules = { 'no-build-and-image': 0 } as const;
    const linter = new DCLinter({ rules, quiet: true, debug: false, exclude: [] });
    type Result = { readonly messages: readonly Record<'type' | 'message', string>[] };
    const results: readonly Result[] = linter.lintFiles([path], false);
    return results
      .flatMap(({ messages }) => messages)
      .flatMap(({ type, message }) => (type === 'error' ? [message] : []));
  }

  test('follows the Compose specification', () => {
    expect(findFaults('deploy/compose.yaml')).toEqual([]);
  });

  test("follows the same rules when it replaces the platform's media service", () => {
    const file = 'deploy/platform/compose.yaml';
    expect(findFaults(file)).toEqual([]);
    const values: Readonly<Record<string, string>> = {
      FLUXER_MEDIA_ENDPOINT: 'https://chat.example.org/media',
      FLUXER_S3_ENDPOINT: 'http://s3:9000',
      FLUXER_MEDIA_PROXY_SECRET_KEY: 'an-example-key-of-thirty-two-bytes-or-more',
      PLATFORM_RANGE: '172.18.0.0/16',
    };
    // Replaces `${A:+…${B}}` by `${B}`.
    const required = read(file).replaceAll(/\$\{\w+:\+([^$]*\$\{\w+)\}\}/g, '$1:?}');
    const filled = required.replaceAll(/\$\{(\w+):[?-]([^}]*)\}/g, (_, name, fallback) => {
      if (name.endsWith('BASE64')) return Buffer.alloc(32, name).toString('base64');
      return values[name] ?? (fallback || name.toLowerCase().replaceAll('_', '-'));
    });
    const variables = variablesOf(servicesOf(filled).darkroom ?? expect.fail());
    expect(readConfig(variables)).toMatchObject({
      storage: { kind: 's3', bucket: 'fluxer-s3-bucket-cdn' },
      uploads: { kind: 's3', bucket: 'fluxer-s3-bucket-uploads' },
      internal: { listen: { port: 3100 } },
      parseOptions: { publicUrls: [{ origin: 'https://chat.example.org', segments: ['media'] }] },
      unknownSettings: [],
    });
    // The page explains each variable of the platform.
    const page = read('docs/platform.md');
    for (const [, name] of read(file).matchAll(/\$\{(FLUXER_\w+)/g)) expect(page).toContain(name);
    for (const name of Object.keys(variables)) {
      if (!/^(AWS|ADMIN_HOST|INTERNAL_HOST)/.test(name)) expect(page).toContain(name);
    }
  });

  test('has its secrets in a private file, and replicas that the service and nginx accept', async () => {
    const secretsFile = join((await useTemporaryDirectory()).path, '.env');
    execFileSync('deploy/secrets', [secretsFile]);
    expect(statSync(secretsFile).mode & 0o777).toBe(0o600);
    const written = read(secretsFile);
    expect(() => execFileSync('deploy/secrets', [secretsFile], { stdio: 'pipe' })).toThrow();
    expect(read(secretsFile)).toBe(written); // it is never written over
    const secrets = readVariables(written.split('\n'));
    const names = [...text.matchAll(/\$\{(\w+)/g)].map(([, name]) => name);
    expect(new Set(names)).toEqual(new Set(Object.keys(secrets)));
    for (const secret of Object.values(secrets)) expect(secret).toMatch(/^(GK)?[0-9a-f]{24,64}$/);

    const filled = text.replaceAll(/\$\{(\w+):\?[^}]*\}/g, (_, name) => secrets[name] ?? '');
    const services = servicesOf(filled);
    const replicas = Object.entries(services).filter(([name]) => /^darkroom-\d$/.test(name));
    for (const [, service] of replicas) {
      const variables = variablesOf(service);
      expect(readConfig(variables)).toMatchObject({
        storage: { kind: 's3', bucket: 'originals' },
        resultStore: { kind: 's3', bucket: 'renderings' },
        admin: { listen: { port: 9090 } },
      });
      const unknown = Object.keys(variables).filter((name) => !(name in settingTable));
      expect(unknown.sort()).toEqual(['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']);
    }
    const site = read('deploy/nginx/darkroom-replicas.conf');
    const known = [...site.matchAll(/^ *server (darkroom-\d):3000 /gm)].map(([, name]) => name);
    expect(known).toEqual(replicas.map(([name]) => name));
    expect(services.nginx?.extra_hosts).toEqual(
      Object.fromEntries(
        replicas.map(([name, { networks }]) => [name, networks.inside?.ipv4_address]),
      ),
    );
  });
});

describe('the manifests of Kubernetes', () => {
  const DIRECTORY = 'deploy/kubernetes';
  interface Manifest {
    readonly apiVersion: string;
    readonly kind: string;
    readonly spec: Readonly<Record<string, object>>;
  }
  const kustomization = parse(read(`${DIRECTORY}/kustomization.yaml`)) as {
    readonly resources: readonly string[];
    readonly configMapGenerator: readonly { readonly literals: readonly string[] }[];
  };
  const manifests = kustomization.resources.flatMap((name) =>
    parseAllDocuments(read(join(DIRECTORY, name))).map((document) => document.toJS() as Manifest),
  );
  const all = { Deployment, HorizontalPodAutoscaler, NetworkPolicy, PodDisruptionBudget, Service };
  const models: Readonly<Record<string, new (data: never) => Model<unknown>>> = all;
  const find = <Kind = Manifest>(kind: string): Kind =>
    (manifests.find((manifest) => manifest.kind === kind) as Kind | undefined) ??
    expect.fail(`there is no ${kind}`);

  test('are valid by the schema', async () => {
    expect(manifests.map(({ kind }) => kind)).toEqual([
      ...['Deployment', 'Service', 'Service', 'HorizontalPodAutoscaler'],
      ...['PodDisruptionBudget', 'NetworkPolicy'],
    ]);
    // The models detect missing and invalid fields, the compiler unknown names.
    for (const manifest of manifests) {
      const Kind = models[manifest.kind] ?? expect.fail(`unknown kind ${manifest.kind}`);
      new Kind(manifest as never).validate();
    }
    const { path, put } = await useTemporaryDirectory();
    symlinkSync(resolve('node_modules'), join(path, 'node_modules'));
    const constants = manifests.map((manifest, index) => {
      const { apiVersion, kind } = manifest;
      const type = `import('kubernetes-models/${apiVersion}/${kind}').I${kind}`;
      return `export const manifest${index}: ${type} = ${JSON.stringify(manifest)};`;
    });
    await put('manifests.ts', constants.join('\n'));
    const flags = '--ignoreConfig --noEmit --strict --skipLibCheck --module nodenext'.split(' ');
    const { stdout } = spawnSync('node_modules/.bin/tsc', [...flags, join(path, 'manifests.ts')]);
    expect(String(stdout)).toBe('');
  });

  test('have valid settings, existing probes and matching labels', () => {
    const [container] = find<IDeployment>('Deployment').spec?.template.spec?.containers ?? [];
    const { env = [], ports = [], ...probes } = container ?? expect.fail();
    const { listen, admin } = readConfig({
      ...readVariables(kustomization.configMapGenerator[0]?.literals ?? []),
      ...Object.fromEntries(env.map(({ name, value = '' }) => [name, value])),
      ADMIN_TOKEN: 'a-token-of-the-tests',
    });
    const allowed = [listen.port, admin?.listen.port];
    expect(ports.map(({ containerPort }) => containerPort)).toEqual(allowed);
    const { startupProbe, livenessProbe, readinessProbe } = probes;
    // A full replica rejects requests for media, so only the startup probe uses their port.
    expect(startupProbe?.httpGet).toEqual({ path: '/avatars/0.png', port: 'http' });
    expect(livenessProbe?.httpGet).toEqual({ path: '/healthz', port: 'admin' });
    expect(readinessProbe?.httpGet).toEqual({ path: '/readyz', port: 'admin' });
    for (const { spec } of manifests) {
      const chosen = spec.selector ?? spec.podSelector;
      if (chosen === undefined) continue;
      const labels = 'matchLabels' in chosen ? chosen.matchLabels : chosen;
      expect(labels).toEqual({ 'app.kubernetes.io/name': 'darkroom' });
    }
  });

  test('allow connections only to public addresses, on ports 80 and 443', () => {
    const { egress = [] } = find<INetworkPolicy>('NetworkPolicy').spec ?? {};
    const rules = egress.filter(({ to }) => to !== undefined);
    expect(rules.map(({ ports }) => ports?.map(({ port }) => port))).toEqual([[80, 443]]);
    const blocks = rules.flatMap(({ to = [] }) => to.flatMap(({ ipBlock }) => ipBlock ?? []));
    const fits = (address: string, networks: readonly string[]): boolean =>
      networks.some((network) => {
        const [base, bits] = ipaddr.parseCIDR(network);
        const parsed = ipaddr.parse(address);
        return parsed.kind() === base.kind() && parsed.match(base, bits);
      });
    const isAllowed = (address: string): boolean =>
      blocks.some(({ cidr, except = [] }) => fits(address, [cidr]) && !fits(address, except));
    const open = ['8.8.8.8', '1.1.1.1', '172.32.0.1', '2606:4700::1', '2a00:1450::1'];
    const closed = [
      ...['10.1.2.3', '172.31.0.1', '192.168.1.1', '127.0.0.1', '169.254.169.254', '100.64.0.1'],
      ...['0.0.0.0', '168.63.129.16', '192.0.0.1', '192.0.2.1', '192.88.99.1', '198.18.0.1'],
      ...['198.51.100.1', '203.0.113.1', '224.0.0.1', '240.0.0.1', '255.255.255.255'],
      ...['::', '::1', 'fd00:ec2::254', 'fe80::1', 'ff02::1', '2001::1', '2001:db8::1', '3fff::1'],
      // A NAT64 translator would forward these to internal addresses.
      ...['64:ff9b::a00:1', '2002:a00:1::1'],
    ];
    for (const address of [...open, ...closed]) {
      expect([address, isAllowed(address)]).toEqual([address, open.includes(address)]);
    }
  });
});
