import { describe, expect, test } from 'vitest';
import { MediaError } from '../../../src/contract/errors.ts';
import { signatureOf, signedPath } from '../../support/signed-urls.ts';
import { samples } from '../../support/test-app.ts';
import {
  ask,
  expectAlike,
  later,
  newKey,
  now,
  questions,
  refusals,
  shareEnforcingApp,
} from './refusals.ts';

const service = shareEnforcingApp();
const { app } = service;

describe('a refused URL and a missing attachment get the same', () => {
  test.each([
    ...Object.keys(questions).map((asked) => [asked, 'none of a signature'] as const),
    ...Object.keys(refusals).flatMap(
      (why) =>
        [
          ['the original', why],
          ['a rendering', why],
        ] as const,
    ),
  ])('asked for %s with %s', (asked, why) =>
    expectAlike(service, refusals[why] ?? expect.fail(), questions[asked] ?? expect.fail()),
  );

  test('what they get is what they got when nothing was signed', async () => {
    const missing = newKey();
    const { status, headers, body } = await app.send('GET', `/${missing}`);
    expect(status).toBe(404);
    expect(JSON.parse(body.toString())).toMatchObject({ code: 'UNKNOWN_MEDIA' });
    expect(headers['cache-control']).toBe('public, max-age=30');
    const wrong = await app.send('GET', `/${missing}?width=0`);
    expect(JSON.parse(wrong.body.toString())).toMatchObject({
      code: 'INVALID_FORM_BODY',
      errors: [{ path: 'width' }],
    });
  });
});

describe('the object of a refused URL', () => {
  test.each(['', 'width=20&format=webp'])('is never asked for (%s)', async (query) => {
    const key = newKey();
    app.originals.put(key, samples.png);
    for (const refuse of Object.values(refusals)) {
      for (const method of ['GET', 'HEAD']) await ask(app, key, refuse(key), { method, query });
    }
    expect(app.originals.reads.get(key)).toBeUndefined();
    expect([...app.originals.reads.keys()].filter((read) => read.includes(key))).toEqual([]);
  });

  test('is looked for under a key that no original can have, the same for all its URLs', async () => {
    const key = newKey();
    app.originals.reads.clear();
    for (const refuse of Object.values(refusals))
      await ask(app, key, refuse(key), { query: 'width=9' });
    const [read, ...more] = app.originals.reads;
    expect(more).toEqual([]);
    expect(read?.[0]).toMatch(/^attachments\/x[0-9a-f]+\/x[0-9a-f]+\/[0-9a-f]+$/);
    // Remembered like any 404, and for as long.
    expect(read?.[1]).toBe(1);
    app.clock.advance(30_001);
    await ask(app, key, '', { query: 'width=9' });
    expect(app.originals.reads.get(read?.[0] ?? '')).toBe(2);
  });

  test('may be the same to others while it is refused to one', async () => {
    const key = newKey();
    app.originals.put(key, samples.png);
    const [good, bad] = [signedPath(key, later, 'width=30'), `/${key}?width=30`];
    const statuses = await Promise.all(
      [good, bad, good, bad].map(async (path) => (await app.send('GET', path)).status),
    );
    expect(statuses).toEqual([200, 404, 200, 404]);
  });
});

describe('a storage that fails', () => {
  test('fails for a refused URL, too', async () => {
    const [present, missing] = [newKey(), newKey()];
    app.originals.put(present, samples.png);
    await app.send('GET', signedPath(present, later, 'width=20'));
    app.originals.failure = new MediaError('ORIGIN_ERROR');
    try {
      for (const query of ['', 'width=20']) {
        const expected = await ask(app, missing, signatureOf(missing, later), { query });
        expect(expected).toContain('ORIGIN_ERROR');
        expect(await ask(app, present, '', { query })).toBe(expected);
      }
    } finally {
      app.originals.failure = undefined;
    }
  });
});

describe('the check comes before a hit', () => {
  test('in memory, and along the fast path', async () => {
    const key = newKey();
    app.originals.put(key, samples.png);
    const path = signedPath(key, later, 'width=25');
    for (const state of ['darkroom; fwd=miss; stored', 'darkroom; hit', 'darkroom; hit']) {
      const { status, headers } = await app.send('GET', path);
      expect([status, headers['cache-status']]).toEqual([200, state]);
    }
    expect((await app.send('GET', `/${key}?width=25`)).status).toBe(404);
    service.time = later - 0.001;
    expect((await app.send('GET', path)).status).toBe(200);
    service.time = later;
    const missing = newKey();
    const signature = signatureOf(missing, later + 9);
    for (const of of [key, missing]) await ask(app, of, signature, { query: 'width=25' });
    expect(await ask(app, key, signatureOf(key, later), { query: 'width=25' })).toBe(
      await ask(app, missing, signature, { query: 'width=25' }),
    );
    service.time = now;
  });
});
