import { readFileSync, writeFileSync } from 'node:fs';
import { Validator } from '@seriousme/openapi-schema-validator';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { errorRegistry } from '../../../src/contract/errors.ts';
import { ASSET_WIDTHS_PX } from '../../../src/contract/media-query.ts';
import { findPathValueFault, pathValueForms } from '../../../src/contract/path-value.ts';
import { resourceRows } from '../../../src/contract/resources.ts';
import type { OpenapiDocument } from '../../../tools/openapi/model.ts';
import { formatOpenapi } from '../../../tools/openapi/openapi-document.ts';
import { sendRaw } from '../../support/http/raw-http.ts';
import { OpenapiReader } from '../../support/openapi/openapi-reader.ts';
import { startService } from '../../support/processes/service-process.ts';
import { metricsSettings } from '../../support/telemetry/prometheus-text.ts';
import { useTestApp } from '../../support/test-app.ts';

/** `npm run openapi` writes it anew. */
const FILE = 'docs/openapi.json';

const text = formatOpenapi();
const document = JSON.parse(text);

describe('the OpenAPI document', () => {
  test('is valid OpenAPI 3.1', async () => {
    const validator = new Validator();
    const { valid, errors } = await validator.validate(structuredClone(document));
    expect(errors).toBeUndefined();
    expect(valid).toBe(true);
    expect(validator.version).toBe('3.1');
    const broken = structuredClone(document);
    delete broken.paths['/emojis/{emoji_id}.{ext}'].get.responses;
    broken.paths['/healthz'].get.parameters = [{ name: 'x' }];
    expect((await new Validator().validate(broken)).valid).toBe(false);
  });

  test('has no pointer that leads nowhere, and no component without a pointer to it', () => {
    const pointers = new Set(text.match(/(?<="\$ref": ")[^"]+/g));
    expect(pointers.size).toBeGreaterThan(40);
    const components = Object.entries(document.components).flatMap(([kind, members]) =>
      kind === 'securitySchemes'
        ? []
        : Object.keys(members as object).map((name) => `#/components/${kind}/${name}`),
    );
    // The response to a method that no operation has is the only one that no operation points to.
    const unused = ['#/components/responses/Error405', '#/components/schemas/MethodNotAllowed'];
    expect(components.filter((pointer) => !pointers.has(pointer))).toEqual(unused.slice(0, 1));
    expect([...pointers].filter((pointer) => !components.includes(pointer))).toEqual([]);
  });

  test('is the committed file', () => {
    if (process.env.UPDATE_OPENAPI === '1') writeFileSync(FILE, text);
    expect(readFileSync(FILE, 'utf8')).toBe(text);
  });

  test('has every resource, every size and every error', () => {
    for (const { template, originKey, extensions } of Object.values(resourceRows)) {
      const item = document.paths[template];
      expect(item['x-origin-key'], template).toBe(originKey);
      const ext = item.parameters.find(({ name }: { name: string }) => name === 'ext');
      expect(ext?.schema.enum, template).toEqual(extensions);
    }
    const avatar = document.paths['/avatars/{user_id}/{avatar_hash}.{ext}'].get;
    const parameters = Object.fromEntries(
      avatar.parameters.flatMap((parameter: { name?: string; schema: object }) =>
        parameter.name === undefined ? [] : [[parameter.name, parameter.schema]],
      ),
    );
    expect(parameters).toEqual({
      size: { type: 'integer', enum: [...ASSET_WIDTHS_PX], default: 128 },
      quality: { type: 'string', enum: ['high', 'low', 'lossless'], default: 'high' },
      animated: { type: 'boolean', default: false },
    });
    for (const code of Object.keys(errorRegistry)) expect(text).toContain(`"const": "${code}"`);
  });

  test('has the version of the package', () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
    expect(document.info.version).toBe(version);
  });

  test('has the server of each operation, and who may ask', () => {
    const needToken: string[] = [];
    for (const [template, item] of Object.entries<OpenapiDocument['paths'][string]>(
      document.paths,
    )) {
      for (const operation of [item.get, item.head, item.options, item.post, item.put]) {
        if (operation === undefined) continue;
        const { operationId, tags, servers, security } = operation;
        const [server] = servers ?? document.servers;
        const expected = tags.includes('admin')
          ? '{admin_url}'
          : template === '/avatars/{index}.{ext}'
            ? '{static_url}'
            : '{cdn_url}';
        expect(server.url, operationId).toBe(expected);
        if (security.length > 0) needToken.push(operationId);
      }
    }
    expect(needToken).toEqual(['getMetrics', 'purge']);
  });

  test('can be read by those who know no property escapes, and types every body', () => {
    expect(text).not.toMatch(/\\\\p\{/i);
    const contents = text.match(/"content": \{\s*"[^"]+": \{\s*("schema")?/g) ?? [];
    expect(contents.length).toBeGreaterThan(30);
    for (const content of contents) expect(content).toMatch(/"schema"$/);
  });

  test('asks nothing of an id but that it is a text, since any is accepted', () => {
    expect(document.components.parameters['X-Request-Id'].schema).toEqual({ type: 'string' });
  });

  test('has the default avatars that there are', () => {
    const [index] = document.paths['/avatars/{index}.{ext}'].parameters;
    expect(index.schema).toEqual({ type: 'integer', enum: [0, 1, 2, 3, 4, 5] });
  });

  test('has examples that exist among the samples, and get what is documented', async () => {
    const service = await startService({});
    onTestFinished(async () => void (await service.stop()));
    const reader = new OpenapiReader(FILE);
    for (const operation of reader.operations('media')) {
      const path = operation.parameters.reduce(
        (whole, { name, example }) => whole.replace(`{${name}}`, String(example)),
        operation.template,
      );
      const response = await sendRaw(Number(new URL(service.origin).port), operation.method, path);
      const asked = `${operation.method} ${path}`;
      expect(response.status, asked).toBe(operation.method === 'OPTIONS' ? 204 : 200);
      expect(reader.findDeviations(operation, response), asked).toEqual([]);
    }
  });

  test('has the forms of path values that are checked', () => {
    const filename = new RegExp(pathValueForms.filename.pattern, 'u');
    const { maxBytes } = pathValueForms.filename;
    const candidate = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 300 }),
      fc.constantFrom('.', '..', '...', '.a', '/', '\\', '\n', 'a\u0085', 'é'.repeat(128)),
    );
    fc.assert(
      fc.property(candidate, (value) => {
        const fits = filename.test(value) && Buffer.byteLength(value) <= maxBytes;
        expect(findPathValueFault('filename', value) === undefined).toBe(fits);
      }),
    );
    const limit = 2n ** 64n - 1n;
    fc.assert(
      fc.property(fc.bigInt({ min: -limit, max: limit * 20n }), (value) => {
        const fits = value >= 0n && value <= limit;
        expect(findPathValueFault('user_id', String(value)) === undefined).toBe(fits);
      }),
    );
    // At each of its digits, the largest one could be one more or less.
    for (let unit = 1n; unit <= limit; unit *= 10n) {
      expect(findPathValueFault('user_id', String(limit - unit)), `${unit}`).toBeUndefined();
      expect(findPathValueFault('user_id', String(limit + unit)), `${unit}`).toBeDefined();
    }
  });
});

describe('the admin listener', () => {
  test('gives the document to anybody', async () => {
    const app = await useTestApp({ settings: metricsSettings });
    const response = await app.askAdmin('/openapi.json');
    expect(response.statusCode).toBe(200);
    expect(response.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(response.headers['cache-control']).toBe('no-store');
    expect(response.payload).toBe(text);
    expect((await app.get('/openapi.json')).statusCode).toBe(404);
  });
});
