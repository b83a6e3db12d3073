import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MediaError } from '../../../src/contract/errors.ts';
import { resourceRows } from '../../../src/contract/resources.ts';
import type { Origin } from '../../../src/pipeline/ports.ts';
import type { WireResponse } from '../../support/http/wire-response.ts';
import { MemoryOrigin } from '../../support/memory-origin.ts';
import { type DocumentedOperation, OpenapiReader } from '../../support/openapi/openapi-reader.ts';
import {
  type GeneratedRequest,
  invalidRequests,
  validRequests,
} from '../../support/openapi/openapi-requests.ts';
import { metricsSettings, withToken } from '../../support/telemetry/prometheus-text.ts';
import { samples, shareTestApp, useTestApp } from '../../support/test-app.ts';

/**
 * Every request here is made from the committed document alone, and every response is compared with it:
 * what it says must be so, and what is so must be in it.
 */
const reader = new OpenapiReader('docs/openapi.json');

const MAX_ORIGINAL_BYTES = 400_000;

/** What an original may be; which one it is follows from its key. */
const originals: readonly (Uint8Array | MediaError | Error)[] = [
  samples.jpeg,
  samples.png,
  samples.webp,
  samples.animatedGif,
  samples.text,
  samples.jpeg.subarray(0, samples.jpeg.length - 500),
  Buffer.alloc(MAX_ORIGINAL_BYTES + 1),
  new MediaError('UNKNOWN_MEDIA'),
  new MediaError('ORIGIN_ERROR', { cause: new Error('of the test') }),
  new MediaError('ORIGIN_TIMEOUT'),
  new MediaError('OVERLOADED', { retryAfterSeconds: 2 }),
  new Error('a bug of the test'),
];

const origin: Origin = {
  read: async (key, options) => {
    const original = originals[(createHash('md5').update(key).digest()[0] ?? 0) % originals.length];
    if (original instanceof Error) throw original;
    const memory = new MemoryOrigin();
    memory.put(key, original ?? samples.text);
    return memory.read(key, options);
  },
};

const app = shareTestApp({
  origin,
  settings: {
    ...metricsSettings,
    MAX_ORIGINAL_BYTES: String(MAX_ORIGINAL_BYTES),
  },
});

/** Statuses of all responses to operations of media. */
const seen = new Set<string>();

async function ask({ method }: DocumentedOperation, request: GeneratedRequest) {
  const response = await app.send(method, request.target, request.headers);
  seen.add(String(response.status));
  return response;
}

function expectDocumented(
  operation: DocumentedOperation,
  request: GeneratedRequest,
  response: WireResponse,
): void {
  const asked = `${operation.method} ${request.target} ${JSON.stringify(request.headers)}`;
  expect(reader.findDeviations(operation, response), `${asked}: ${response.status}`).toEqual([]);
}

/** Asks for more than a client has. */
async function expectLimited(operation: DocumentedOperation): Promise<void> {
  const limited = await useTestApp({ settings: { RATE_LIMIT_REQUESTS: '1' } });
  limited.originals.put('emojis/1', samples.png);
  const statuses = [];
  for (const size of [16, 20]) {
    const request = { target: `/emojis/1.webp?size=${size}`, headers: {}, faults: [] };
    const response = await limited.send('GET', request.target);
    expectDocumented(operation, request, response);
    statuses.push(response.status);
    seen.add(String(response.status));
  }
  expect(statuses).toEqual([200, 429]);
}

const media = reader.operations('media');
const named = media.map((operation) => [operation.operation.operationId, operation] as const);
const gets = media.filter(({ method }) => method === 'GET');
const unsigned = Object.values(resourceRows).filter(({ isSigned }) => !isSigned);

describe('the service is as its OpenAPI document says:', () => {
  test('the document has operations to be tried', () => {
    expect(media.length).toBe(3 * unsigned.length);
    expect(reader.operations('admin').length).toBe(5);
  });

  test.each(named)('%s, with what is documented', async (_, operation) => {
    const runs = { GET: 40, HEAD: 12, OPTIONS: 8, POST: 0, PUT: 0 }[operation.method];
    await fc.assert(
      fc.asyncProperty(validRequests(reader, operation), async (request) => {
        const response = await ask(operation, request);
        expect(response.status, request.target).not.toBe(400);
        expectDocumented(operation, request, response);
      }),
      { numRuns: runs },
    );
  });

  test.each(named)('%s, with what is not documented', async (_, operation) => {
    await fc.assert(
      fc.asyncProperty(invalidRequests(reader, operation), async (request) => {
        const response = await ask(operation, request);
        expectDocumented(operation, request, response);
        expect(response.status, request.target).toBe(expectedStatus(operation, request));
        if (operation.method === 'GET' && response.status === 400) {
          expectFaults(operation, request, response);
        }
      }),
      { numRuns: operation.method === 'GET' ? 30 : 8 },
    );
  });

  test.each(gets)('conditions and ranges of $operation.operationId', async (operation) => {
    const statuses: number[] = [];
    await fc.assert(
      fc.asyncProperty(validRequests(reader, operation), async (request) => {
        const plain = { ...request, headers: {} };
        const { status, headers } = await ask(operation, plain);
        fc.pre(status === 200);
        const { etag = '' } = headers;
        const conditions = [
          { 'If-None-Match': etag },
          { Range: 'bytes=0-0', 'If-Range': etag },
          { Range: 'bytes=99999999-' },
        ];
        for (const condition of conditions) {
          const response = await ask(operation, { ...plain, headers: condition });
          expectDocumented(operation, { ...plain, headers: condition }, response);
          statuses.push(response.status);
        }
      }),
      { numRuns: 6 },
    );
    expect(statuses).toEqual(Array.from({ length: 6 }, () => [304, 206, 416]).flat());
  });

  test('every status that is documented was seen, but that of clients that are too slow', async () => {
    const [operation] = media;
    if (operation === undefined) return expect.fail('there is no operation');
    const request = { target: '/emojis/1.png', headers: { 'X-Long': 'x'.repeat(20_000) } };
    const tooLarge = await ask(operation, { ...request, faults: [] });
    expectDocumented(operation, { ...request, faults: [] }, tooLarge);
    await expectLimited(operation);
    const documented = new Set(
      media.flatMap(({ operation: { responses } }) => Object.keys(responses)),
    );
    const unseen = ['408'];
    expect([...documented].filter((status) => !seen.has(status)).sort()).toEqual(unseen);
    expect([...seen].filter((status) => !documented.has(status))).toEqual([]);
  });

  test('methods that are not documented are refused as it says', async () => {
    const refused = reader.document.components.responses.Error405;
    if (refused === undefined) return expect.fail('there is no response to other methods');
    for (const { template, operation, parameters } of media) {
      const responses = { 405: refused };
      const response = await app.send('DELETE', template.replaceAll(/\{\w+\}/g, '1'));
      const asDocumented = {
        method: 'GET',
        template,
        operation: { ...operation, responses },
        parameters,
      } as const;
      expect(reader.findDeviations(asDocumented, response), template).toEqual([]);
    }
  });
});

describe('the admin listener is as its OpenAPI document says:', () => {
  const anyPath: fc.Arbitrary<string> = fc
    .constantFrom(...media.filter(({ operation }) => operation.operationId.startsWith('get')))
    .filter(({ template }) => reader.document.paths[template]?.['x-origin-key'] !== undefined)
    .chain((operation) => validRequests(reader, operation))
    .map(({ target }) => target);
  const orders = fc.oneof(
    fc.record({ paths: fc.array(anyPath, { minLength: 1, maxLength: 5 }) }),
    fc.constantFrom({ assets: ['avatars/1/ab12'] }, { prefix: 'avatars/1/' }),
  );
  const noOrders = fc.oneof(
    fc.jsonValue(),
    fc.constantFrom(
      { paths: [] },
      { prefix: 'avatars' },
      { assets: ['avatars/1/ab12'], paths: ['/x'] },
    ),
  );

  const send = async (
    operation: DocumentedOperation,
    headers: Record<string, string>,
    body?: string,
  ) => {
    const { method, template } = operation;
    const payload = body !== undefined && { payload: body };
    const response = await app.askAdmin(template, { method, headers, ...payload });
    const received: WireResponse = {
      status: response.statusCode,
      headers: Object.fromEntries(
        Object.entries(response.headers).map(([name, value]) => [name, String(value)]),
      ),
      body: response.rawPayload,
    };
    expect(reader.findDeviations(operation, received), operation.template).toEqual([]);
    return received.status;
  };
  const admin = reader.operations('admin');
  const token = withToken;

  test.each(admin.map((operation) => [operation.template, operation] as const))(
    '%s, with and without a token',
    async (_, operation) => {
      const needsToken = (operation.operation.security ?? []).length > 0;
      const withoutToken = await send(operation, {});
      expect(withoutToken === 401).toBe(needsToken);
      expect(await send(operation, token)).not.toBe(401);
    },
  );

  test('orders', async () => {
    const purge = admin.find(({ method }) => method === 'POST');
    const schema = purge?.operation.requestBody?.content['application/json']?.schema;
    if (purge === undefined || schema === undefined) return expect.fail('there is no order');
    const json = { ...token, 'content-type': 'application/json' };
    await fc.assert(
      fc.asyncProperty(orders, async (order) => {
        expect(reader.isValid(schema, order)).toBe(true);
        expect(await send(purge, json, JSON.stringify(order))).toBe(200);
      }),
      { numRuns: 40 },
    );
    await fc.assert(
      fc.asyncProperty(noOrders, async (order) => {
        fc.pre(!reader.isValid(schema, order));
        expect(await send(purge, json, JSON.stringify(order))).toBe(400);
      }),
      { numRuns: 60 },
    );
    const long = JSON.stringify({ paths: ['x'.repeat(3_000_000)] });
    expect(await send(purge, json, long)).toBe(413);
    expect(await send(purge, { ...token, 'content-type': 'application/xml' }, '<paths/>')).toBe(
      415,
    );
  });
});

/** A preflight asks for methods, and a default avatar that does not exist is missing; else, a fault is a 400. */
function expectedStatus(
  { method, parameters }: DocumentedOperation,
  { target, faults }: GeneratedRequest,
): number {
  if (method === 'OPTIONS') return 204;
  const hasIndex = parameters.some(({ name }) => name === 'index');
  const [, index = ''] = /^\/avatars\/([^/]*)\.png$/.exec(target) ?? [];
  const isNumber = reader.isValidText(
    { $ref: '#/components/schemas/Snowflake' },
    decodeURIComponent(index),
  );
  return hasIndex && isNumber && faults.join() === 'index' ? 404 : 400;
}

/** The body names every parameter at fault of the query, and no other of it. */
function expectFaults(
  { parameters }: DocumentedOperation,
  { target, faults }: GeneratedRequest,
  { body }: WireResponse,
): void {
  const { errors } = JSON.parse(body.toString());
  const told = new Set(errors.map(({ path }: { path: string }) => path));
  const ofQuery = parameters
    .filter((parameter) => parameter.in === 'query')
    .map(({ name }) => name);
  expect(
    ofQuery.filter((name) => told.has(name)),
    target,
  ).toEqual(ofQuery.filter((name) => faults.includes(name)));
  // A wrong extension with a dot in it reads as the end of what is before it.
  const ofPath = parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => name);
  expect(
    ofPath.some((name) => told.has(name)),
    target,
  ).toBe(ofPath.some((name) => faults.includes(name)));
}
