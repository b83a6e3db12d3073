import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse, type ScalarTag } from 'yaml';
import { readConfig } from '../../src/config/config.ts';
import { findFreePorts } from '../support/processes/local-server.ts';
import { useService } from '../support/processes/service-process.ts';
import { LOCAL_CREDENTIALS, useLocalS3 } from '../support/s3/local-s3.ts';
import { samples } from '../support/test-app.ts';

/** The parts of a self-hosted installation that a merge changes, in our words; not facts about Darkroom. */
const PLATFORM_FILE = `
name: fluxer
services:
  media-proxy:
    image: ghcr.io/example/media-proxy:latest
    environment:
      FLUXER_MEDIA_PROXY_MODE: upload
      FLUXER_S3_ENDPOINT: http://seaweedfs:8333
      FLUXER_S3_BUCKET_CDN: fluxer
      FLUXER_S3_BUCKET_UPLOADS: fluxer-uploads
      AWS_ACCESS_KEY_ID: \${FLUXER_S3_ACCESS_KEY}
      AWS_SECRET_ACCESS_KEY: \${FLUXER_S3_SECRET_KEY}
      FLUXER_MEDIA_ENDPOINT: \${FLUXER_PUBLIC_SCHEME:-https}://\${FLUXER_DOMAIN}/media
    healthcheck:
      disable: true
    deploy:
      resources:
        limits:
          memory: \${FLUXER_MEDIA_PROXY_MEMORY_LIMIT:-512m}
    depends_on:
      seaweedfs-init: { condition: service_completed_successfully }
      nats: { condition: service_started }
    networks: [fluxer]
`;

const operator: Readonly<Record<string, string>> = {
  FLUXER_DOMAIN: 'chat.example.org',
  FLUXER_PUBLIC_SCHEME: 'https',
  FLUXER_PUBLIC_PORT: '443',
  FLUXER_S3_ACCESS_KEY: LOCAL_CREDENTIALS.AWS_ACCESS_KEY_ID,
  FLUXER_S3_SECRET_KEY: LOCAL_CREDENTIALS.AWS_SECRET_ACCESS_KEY,
  FLUXER_MEDIA_PROXY_SECRET_KEY: 'an-example-key-of-thirty-two-bytes-or-more',
  FLUXER_MEDIA_PROXY_UPLOAD_RELAY_SECRET_BASE64: Buffer.alloc(32, 7).toString('base64'),
};

interface ComposeService {
  readonly environment: Readonly<Record<string, string | number>>;
  readonly [member: string]: unknown;
}

const RESET = Symbol('reset');
const reset: ScalarTag = { tag: '!reset', resolve: () => RESET };

/** Interpolates a Compose file with the operator's variables. */
function readCompose(text: string) {
  const filled = text.replaceAll(
    /\$\{(\w+)(?::([-?])([^}]*))?\}/g,
    (_, name: string, sign = '', fallback = '') => {
      const value = operator[name];
      if (value === undefined && sign !== '-') throw new Error(`${name} is not set`);
      return value ?? fallback;
    },
  );
  return parse(filled, { customTags: [reset] }) as { services: { 'media-proxy': ComposeService } };
}

/** Merges by the Compose specification: mappings by member, sequences by concatenation, commands as a whole. */
function merge(base: unknown, other: unknown, member = ''): unknown {
  if (other === RESET) return undefined;
  const isReplaced = ['command', 'entrypoint', 'test'].includes(member);
  if (Array.isArray(base) && Array.isArray(other) && !isReplaced) return [...base, ...other];
  if (!isMapping(base) || !isMapping(other)) return other;
  const merged: Record<string, unknown> = { ...base };
  for (const [name, value] of Object.entries(other)) merged[name] = merge(base[name], value, name);
  return merged;
}

function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const base = readCompose(PLATFORM_FILE);
const override = readCompose(readFileSync('deploy/platform/compose.override.yaml', 'utf8'));
const service = (merge(base, override) as typeof base).services['media-proxy'];
const environment = Object.fromEntries(
  Object.entries(service.environment).map(([name, value]) => [name, String(value)]),
);

test('the override replaces the media service and keeps the limits and dependencies of the platform', () => {
  expect(Object.keys(override)).toEqual(['services']);
  expect(Object.keys(override.services)).toEqual(['media-proxy']);
  const own = base.services['media-proxy'];
  expect(service).toMatchObject({
    image: 'darkroom:local',
    healthcheck: { disable: false, test: ['CMD', 'node', 'bin/darkroom.mjs', 'health'] },
    deploy: own.deploy,
    depends_on: own.depends_on,
    networks: own.networks,
  });
  // Compose rejects a service with both, and resolves a relative build in the platform's directory.
  expect(service).not.toHaveProperty('mem_limit');
  expect(service.build).toBeUndefined();
});

test('the override has settings that the service accepts', () => {
  expect(readConfig(environment)).toMatchObject({
    listen: { host: '0.0.0.0', port: 8080 },
    storage: { kind: 's3', bucket: 'fluxer' },
    uploads: { kind: 's3', bucket: 'fluxer-uploads' },
    internal: { isShared: true },
    parseOptions: { publicUrls: [{ origin: 'https://chat.example.org', segments: ['media'] }] },
    unknownSettings: [],
  });
});

test("Darkroom starts with the override's settings and serves public and internal routes on one port", async () => {
  const store = await useLocalS3({ buckets: ['fluxer', 'fluxer-uploads'] });
  await store.put('avatars/1/ab12', samples.png);
  const [port = 0] = await findFreePorts(1);
  const darkroom = await useService({
    ...environment,
    S3_ENDPOINT: store.endpoint,
    ...{ HOST: '127.0.0.1', INTERNAL_HOST: '127.0.0.1' },
    ...{ PORT: String(port), INTERNAL_PORT: String(port) },
  });
  const avatar = await fetch(`${darkroom.origin}/avatars/1/ab12.webp?size=128`);
  expect([avatar.status, avatar.headers.get('content-type')]).toEqual([200, 'image/webp']);
  const health = await fetch(`${darkroom.origin}/_health`);
  expect([health.status, await health.text()]).toEqual([200, 'OK attachment_signature=off']);
  const request = (authorization: string) =>
    fetch(`${darkroom.origin}/_metadata`, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json' },
      body: JSON.stringify({
        ...{ version: 2, type: 'base64', nsfw: 'allow' },
        base64: samples.png.toString('base64'),
      }),
    });
  expect((await request('Bearer wrong')).status).toBe(401);
  const metadata = await request(`Bearer ${operator.FLUXER_MEDIA_PROXY_SECRET_KEY}`);
  expect(await metadata.json()).toMatchObject({ format: 'png', content_type: 'image/png' });
  const wrong = await fetch(`${darkroom.origin}/_metadata`);
  expect([wrong.status, wrong.headers.get('allow')]).toEqual([401, null]);
});
