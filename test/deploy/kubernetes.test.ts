import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { BlockList, isIPv6 } from 'node:net';
import { join } from 'node:path';
import type { Model } from '@kubernetes-models/base';
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
import { AddressGuard } from '../../src/storage/remote/address-guard.ts';
import { PrometheusMeter } from '../../src/telemetry/prometheus-meter.ts';
import { OpenapiReader } from '../support/openapi/openapi-reader.ts';

const FOLDER = 'deploy/kubernetes';

/** As much of a manifest as is looked at here. */
interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

const kustomization = parse(readFileSync(`${FOLDER}/kustomization.yaml`, 'utf8')) as {
  readonly resources: readonly string[];
  readonly configMapGenerator: readonly { readonly literals: readonly string[] }[];
};
const manifests = kustomization.resources.flatMap((name) =>
  parseAllDocuments(readFileSync(join(FOLDER, name), 'utf8')).map(
    (document) => document.toJS() as Manifest,
  ),
);

const models: Readonly<Record<string, new (data: never) => Model<unknown>>> = {
  Deployment,
  HorizontalPodAutoscaler,
  NetworkPolicy,
  PodDisruptionBudget,
  Service,
};

/**
 * What is wrong with manifests by the schema of Kubernetes: the compiler finds unknown names and wrong
 * types (the models alone let unknown names pass), the models what is missing or out of form.
 */
function findFaults(all: readonly Manifest[]): string[] {
  const folder = mkdtempSync('test/deploy/.checked-');
  try {
    for (const [index, manifest] of all.entries()) {
      const { apiVersion, kind } = manifest;
      const module = `kubernetes-models/${apiVersion}/${kind}`;
      writeFileSync(
        join(folder, `${index}.ts`),
        `import type { I${kind} } from '${module}';\n` +
          `export const manifest: I${kind} = ${JSON.stringify(manifest)};\n`,
      );
    }
    const files = readdirSync(folder).map((name) => join(folder, name));
    const flags = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext'];
    execFileSync('node_modules/.bin/tsc', ['--ignoreConfig', ...flags, ...files], {
      encoding: 'utf8',
      stdio: 'pipe',
    });
  } catch (error) {
    const { stdout } = error as { readonly stdout?: string };
    if (stdout === undefined) throw error;
    return [stdout];
  } finally {
    rmSync(folder, { recursive: true });
  }
  return all.flatMap((manifest) => {
    const model = models[manifest.kind];
    if (model === undefined) return [`unknown kind ${manifest.kind}`];
    try {
      new model(manifest as never).validate();
      return [];
    } catch (error) {
      return [`${manifest.kind}: ${String(error)}`];
    }
  });
}

/** The manifest of a kind, which follows its schema: the first test proves it. */
const find = <Kind = Manifest>(kind: string): Kind =>
  (manifests.find((manifest) => manifest.kind === kind) as Kind | undefined) ??
  expect.fail(`there is no ${kind}`);

const [container] = find<IDeployment>('Deployment').spec?.template.spec?.containers ?? [];
const { env = [], ports: containerPorts = [], ...probes } = container ?? expect.fail();

describe('the manifests', () => {
  test('follow the schema of Kubernetes', () => {
    expect(manifests.map(({ kind }) => kind)).toEqual([
      'Deployment',
      'Service',
      'Service',
      'HorizontalPodAutoscaler',
      'PodDisruptionBudget',
      'NetworkPolicy',
    ]);
    expect(findFaults(manifests)).toEqual([]);
  });

  test.each([
    ['an unknown name', 'readinessProbe', 'redinessProbe', /redinessProbe/],
    ['a wrong type', '"periodSeconds":10', '"periodSeconds":"10"', /string/],
    ['a missing part', '"selector"', '"minReadySeconds":1,"x-selector"', /selector/],
    ['a wrong quantity', '"7Gi"', '"7 gigabytes"', /memory/],
  ])('%s would be found', (_, right, wrong, fault) => {
    const text = JSON.stringify(find('Deployment'));
    expect(text).toContain(right);
    const broken = JSON.parse(text.replace(right, wrong)) as Manifest;
    expect(findFaults([broken]).join('\n')).toMatch(fault);
  });

  test('the network policy lets out to public addresses, and to no other', () => {
    const { egress = [] } = find<INetworkPolicy>('NetworkPolicy').spec ?? {};
    const rules = egress.filter(({ to }) => to !== undefined);
    expect(rules.map(({ ports }) => ports?.map(({ port }) => port))).toEqual([[80, 443]]);
    const blocks = rules.flatMap(({ to = [] }) => to.flatMap(({ ipBlock }) => ipBlock ?? []));
    const fits = (address: string, network: string): boolean => {
      const [base = '', bits] = network.split('/');
      const list = new BlockList();
      list.addSubnet(base, Number(bits), isIPv6(base) ? 'ipv6' : 'ipv4');
      return list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
    };
    const isLetOut = (address: string): boolean =>
      blocks.some(
        ({ cidr, except = [] }) =>
          isIPv6(cidr.replace(/\/.*/, '')) === isIPv6(address) &&
          fits(address, cidr) &&
          !except.some((network) => fits(address, network)),
      );
    // It is no narrower than what Darkroom would connect to, but where that needs a translator.
    const guard = new AddressGuard({ allowedNetworks: [], blockedNetworks: [], nat64Prefixes: [] });
    const near = blocks.flatMap(({ cidr, except = [] }) =>
      [cidr, ...except].map((network) => network.replace(/\/.*/, '')),
    );
    const some = ['8.8.8.8', '1.1.1.1', '2606:4700::1', '2a00:1450::1', '10.1.2.3', '172.31.0.1'];
    const inside = [
      '169.254.169.254',
      '192.168.1.1',
      '127.0.0.1',
      '::1',
      'fd00:ec2::254',
      'fe80::1',
    ];
    for (const address of [...near, ...some, ...inside, '64:ff9b::a00:1', '2002:a00:1::1']) {
      expect([address, isLetOut(address)]).toEqual([
        address,
        guard.findFault(address) === undefined,
      ]);
    }
  });

  test('what they set is what the service allows', () => {
    const literals = kustomization.configMapGenerator[0]?.literals ?? [];
    const environment = Object.fromEntries([
      ...literals.map((literal) => literal.split('=') as [string, string]),
      ...env.map(({ name, value = '' }) => [name, value] as const),
      ['ADMIN_TOKEN', 'a-token-of-the-tests'],
    ]);
    const { listen, admin } = readConfig(environment);
    expect(containerPorts.map(({ containerPort }) => containerPort)).toEqual([
      listen.port,
      admin?.listen.port,
    ]);
  });

  test('a replica is restarted for what is wrong with it, not for what is asked of it', () => {
    const { startupProbe, livenessProbe, readinessProbe } = probes;
    // At the port of the media a full replica refuses all. Nothing is asked of one that has just started.
    expect(startupProbe?.httpGet).toEqual({ path: '/avatars/0.png', port: 'http' });
    expect(livenessProbe?.httpGet).toEqual({ path: '/healthz', port: 'admin' });
    expect(readinessProbe?.httpGet).toEqual({ path: '/readyz', port: 'admin' });
    for (const probe of [livenessProbe, readinessProbe]) {
      // The path exists and needs no token: probes have none.
      const { paths } = new OpenapiReader('docs/openapi.json').document;
      expect(paths[probe?.httpGet?.path ?? '']?.get?.security).toEqual([]);
    }
  });

  test('every label that chooses pods is theirs', () => {
    const label = { 'app.kubernetes.io/name': 'darkroom' };
    for (const manifest of manifests) {
      const { selector, podSelector } = (
        manifest as unknown as { readonly spec: Readonly<Record<string, object>> }
      ).spec;
      const chosen = selector ?? podSelector;
      if (chosen === undefined) continue;
      expect('matchLabels' in chosen ? chosen.matchLabels : chosen).toEqual(label);
    }
  });

  test('the metric that replicas follow is one that there is', async () => {
    const rules = readFileSync(`${FOLDER}/prometheus-adapter-rules.yaml`, 'utf8');
    const series = new Set(
      [...rules.matchAll(/darkroom_\w+_(?:sum|count)/g)].map(([name]) => name),
    );
    expect(series.size).toBe(2);
    const text = await new PrometheusMeter().format();
    for (const name of series) expect(text).toContain(`\n${name}{lane="light"} 0\n`);
    const { rules: parsed } = parse(rules) as {
      readonly rules: { readonly custom: readonly { readonly name: { readonly as: string } }[] };
    };
    expect(JSON.stringify(find('HorizontalPodAutoscaler'))).toContain(
      `"metric":{"name":"${parsed.custom[0]?.name.as}"}`,
    );
  });
});
