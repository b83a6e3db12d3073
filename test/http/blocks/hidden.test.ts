import { hash } from 'node:crypto';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { signedPathOf, useExternalApp } from '../../support/sites/external-app.ts';
import { metricsSettings, sendToAdmin } from '../../support/telemetry/prometheus-text.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { samples } from '../../support/test-app.ts';

// Contract §15: a hidden block returns exactly the 404 of a missing original, regardless of the kind of block.

let settings: Readonly<Record<string, string>>;
beforeEach(async () => {
  const { path } = await useTemporaryDirectory();
  const BLOCKLIST_FILE = join(path, 'blocks.jsonl');
  settings = { ...metricsSettings, BLOCKLIST: 'filesystem', BLOCKLIST_FILE };
});

const HOUR_MS = 3_600_000;

/** Requests in sequence, and the time before each. */
const steps = [
  ['GET', {}, 0],
  ['GET', {}, 0],
  ['HEAD', {}, 0],
  ['GET', { range: 'bytes=0-3' }, 0],
  ['GET', { range: 'bytes=99999999-' }, 0],
  ['GET', { 'if-none-match': '*' }, 0],
  ['GET', {}, HOUR_MS],
  ['HEAD', {}, HOUR_MS],
  ['GET', { range: 'bytes=0-3' }, 10_000],
] as const;

/** Starts an app with a hidden and a missing original of each kind. */
async function start() {
  const app = await useExternalApp({ settings });
  const pathOf = (path: string, query = ''): string => signedPathOf(app.urlOf(path), query);
  app.originals.put('icons/1/ab12', samples.png);
  app.originals.put('attachments/1/2/a.png', samples.png);
  app.originals.put('attachments/1/2/a.mp4', samples.png);
  app.site.serve('/a.png', samples.png, { etag: '"a"' });
  app.site.redirect('/moved.png', '/a.png');
  return {
    ...app,
    targets: [
      ['/icons/1/ab12.webp?size=16', '/splashes/1/cd34.webp?size=16'],
      ['/icons/1/ab12.png', '/splashes/1/cd34.png'],
      ['/attachments/1/2/a.png', '/attachments/1/3/b.png'],
      ['/attachments/1/2/a.png?width=8&format=png', '/attachments/1/3/b.png?width=8&format=png'],
      ['/attachments/1/2/a.mp4', '/attachments/1/3/b.mp4'],
      ['/attachments/1/2/a.mp4?quality=high', '/attachments/1/3/b.mp4?quality=high'],
      [pathOf('/a.png'), pathOf('/b.png')],
      [pathOf('/a.png', 'width=8'), pathOf('/b.png', 'width=8')],
      [pathOf('/moved.png'), pathOf('/c.png')],
      [pathOf('/moved.png', 'width=8'), pathOf('/c.png', 'width=8')],
    ] as const,
  };
}

describe('a hidden block', () => {
  const keys = ['icons/1/ab12', 'attachments/1/2/a.png', 'attachments/1/2/a.mp4'];
  const sha256 = [hash('sha256', samples.png)];

  test.each([
    ['key and URL', 'before', { keys }],
    ['key and URL', 'after', { keys }],
    ['SHA-256', 'before', { sha256 }],
    ['SHA-256', 'after', { sha256 }],
    ['directory and URL', 'before', { prefixes: ['icons/1/', 'attachments/1/2/'] }],
    ['kind and URL', 'after', { prefixes: ['icons/', 'attachments/1/2/'] }],
  ])(
    'by %s returns exactly the 404 of a missing original, if it was posted %s the first request',
    async (_, when, payload) => {
      const app = await start();
      const comparableOf = async (
        method: string,
        url: string,
        headers: Readonly<Record<string, string>>,
      ) => {
        const { status, headers: lines, body } = await app.send(method, url, headers);
        const { date: _date, 'x-request-id': _id, 'server-timing': timing, ...same } = lines;
        const stages = String(timing).replace(/dur=[\d.]+/g, 'dur');
        return { status, body: body.toString(), stages, ...same };
      };
      if (when === 'after') {
        for (const [hidden] of app.targets) {
          for (let time = 0; time < 2; time += 1)
            expect((await app.get(hidden)).statusCode).toBe(200);
        }
      }
      const external = 'sha256' in payload ? [] : [app.urlOf('/a.png')];
      const blocked = { ...payload, external, hidden: true };
      expect((await sendToAdmin(app, '/blocks', blocked)).statusCode).toBe(200);
      for (const [hidden, missing] of app.targets) {
        for (const [index, [method, headers, afterMs]] of steps.entries()) {
          app.clock.advance(afterMs);
          const expected = await comparableOf(method, missing, headers);
          const comparable = await comparableOf(method, hidden, headers);
          expect(comparable, `${hidden}, request ${index}`).toEqual(expected);
          expect([comparable.status, comparable.stages]).toEqual([404, expected.stages]);
        }
      }
    },
  );

  test('by URL prevents requests to the site', async () => {
    const app = await start();
    const blocked = { external: [app.urlOf('/a.png')], hidden: true };
    expect((await sendToAdmin(app, '/blocks', blocked)).statusCode).toBe(200);
    for (const query of ['', 'width=8'])
      expect((await app.request('/a.png', query)).status).toBe(404);
    expect(app.site.requests).toHaveLength(0);
  });
});
