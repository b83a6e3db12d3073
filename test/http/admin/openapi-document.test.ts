import { readFileSync } from 'node:fs';
import { Validator } from '@seriousme/openapi-schema-validator';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { findPathValueFault } from '../../../src/contract/resources.ts';
import { openDirectoryStorage } from '../../support/directory-storage.ts';
import { findDeviations, isValid, operationsOf } from '../../support/openapi/openapi-reader.ts';
import { metricsSettings, withToken } from '../../support/telemetry/prometheus-text.ts';
import { samples, shareTestApp, useTestApp } from '../../support/test-app.ts';
import { drawn, spellings } from '../../surface/contract-requests.ts';

const text = readFileSync('docs/openapi.json', 'utf8');
const document = JSON.parse(text);

describe('the OpenAPI document', () => {
  test('is valid OpenAPI 3.1', async () => {
    const validator = new Validator();
    const { valid, errors } = await validator.validate(structuredClone(document));
    expect(errors).toBeUndefined();
    expect(valid).toBe(true);
    expect(validator.version).toBe('3.1');
  });

  test('has no broken reference and no unused component', () => {
    const pointers = new Set(text.match(/(?<="\$ref": ")[^"]+/g));
    expect(pointers.size).toBeGreaterThan(40);
    const components = Object.entries(document.components).flatMap(([kind, members]) =>
      kind === 'securitySchemes'
        ? []
        : Object.keys(members as object).map((name) => `#/components/${kind}/${name}`),
    );
    // No operation refers to the response to an unsupported method.
    const unused = components.filter((pointer) => !pointers.has(pointer));
    expect(unused).toEqual(['#/components/responses/Error405']);
    expect([...pointers].filter((pointer) => !components.includes(pointer))).toEqual([]);
  });

  test('has no patterns with Unicode property escapes, and a type for every body', () => {
    expect(text).not.toMatch(/\\\\p\{/i);
    const contents = text.match(/"content": \{\s*"[^"]+": \{\s*("schema")?/g) ?? [];
    expect(contents.length).toBeGreaterThan(30);
    for (const content of contents) expect(content).toMatch(/"schema"$/);
  });

  test.each(['media', 'platform'])(
    'has examples of %s with the documented responses',
    async (tag) => {
      const { origin } = await openDirectoryStorage('fixtures/originals');
      const settings = { COMPATIBILITY: 'fluxer' };
      const app = await useTestApp(tag === 'media' ? { origin } : { settings });
      // The sample originals lack these.
      app.originals.put('themes/midnight.css', samples.text);
      app.originals.put('entrance-sounds/1/midnight.mp3', samples.mp4);
      app.originals.put('branding/midnight/ab12', samples.png);
      const operations = operationsOf(tag);
      expect(operations.length).toBeGreaterThan(8);
      for (const operation of operations) {
        const path = operation.parameters.reduce(
          (whole, { name, example }) => whole.replace(`{${name}}`, String(example)),
          operation.template,
        );
        const response = await app.send(operation.method, path);
        const title = `${operation.method} ${path}`;
        expect(response.status, title).toBe(operation.method === 'OPTIONS' ? 204 : 200);
        expect(findDeviations(operation, response), title).toEqual([]);
      }
    },
  );

  // test/surface checks all other rules of paths with every request.
  test('accepts exactly the ids that fit into 64 bits', () => {
    const limit = 2n ** 64n - 1n;
    // Each digit of the largest id, one higher and one lower.
    for (let unit = 1n; unit <= limit; unit *= 10n) {
      expect(findPathValueFault('user_id', String(limit - unit)), `${unit}`).toBeUndefined();
      expect(findPathValueFault('user_id', String(limit + unit)), `${unit}`).toBeDefined();
    }
  });
});

describe('the admin listener', () => {
  const admin = operationsOf('admin');
  const app = shareTestApp({ settings: metricsSettings });

  /** Sends a request whose response must be documented. */
  async function request(
    operation: (typeof admin)[number],
    headers: Readonly<Record<string, string>>,
    payload?: string,
  ): Promise<number> {
    const { method, template } = operation;
    const response = await app.requestAdmin(template, {
      method,
      headers,
      ...(payload && { payload }),
    });
    const { statusCode: status, rawPayload: body } = response;
    const received = { status, headers: response.headers, body };
    expect(findDeviations(operation, received), template).toEqual([]);
    return status;
  }

  test.each(admin)(
    'responds as documented with and without a token: $template',
    async (operation) => {
      const needsToken = operation.operation.security?.length !== 0;
      expect((await request(operation, {})) === 401).toBe(needsToken);
      expect(await request(operation, withToken)).not.toBe(401);
    },
  );

  test('accepts exactly the requests of the schema', async () => {
    const purge = admin.find(({ method }) => method === 'POST') ?? expect.fail('no purge');
    const { schema } = purge.operation.requestBody?.content['application/json'] ?? expect.fail();
    const paths = drawn.filter(({ row }) => row.query !== 'none').chain(spellings);
    const bodies = fc.oneof(
      fc.record({
        paths: fc.array(
          paths.filter((path) => path.startsWith('/')),
          { minLength: 1 },
        ),
      }),
      fc.jsonValue(),
      fc.constantFrom<object>(
        ...[{ assets: ['avatars/1/ab12'] }, { prefix: 'avatars/1/' }, { paths: [] }],
        ...[{ prefix: 'avatars' }, { assets: ['avatars/1/ab12'], paths: ['/x'] }],
      ),
    );
    const json = { ...withToken, 'content-type': 'application/json' };
    const seen = new Set<number>();
    await fc.assert(
      fc.asyncProperty(bodies, async (body) => {
        const status = await request(purge, json, JSON.stringify(body));
        expect(status).toBe(isValid(schema, body) ? 200 : 400);
        seen.add(status);
      }),
    );
    expect([...seen].sort()).toEqual([200, 400]);
    const long = JSON.stringify({ paths: ['x'.repeat(3_000_000)] });
    expect(await request(purge, json, long)).toBe(413);
    expect(await request(purge, { ...withToken, 'content-type': 'application/xml' }, '<x/>')).toBe(
      415,
    );
  });

  test('serves the document without a token', async () => {
    const response = await app.requestAdmin('/openapi.json');
    expect(response.statusCode).toBe(200);
    expect(response.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(response.headers['cache-control']).toBe('no-store');
    expect(response.payload).toBe(text);
    expect((await app.get('/openapi.json')).statusCode).toBe(404);
    const statusOf = async (method: 'HEAD' | 'POST') =>
      (await app.requestAdmin('/healthz?x', { method })).statusCode;
    expect([await statusOf('HEAD'), await statusOf('POST')]).toEqual([200, 401]);
  });
});
