import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createFilesystemOrigin } from '../../../src/storage/filesystem/filesystem-origin.ts';
import { type Ask, createClient } from '../../support/http/http-client.ts';
import { createSeededRandom } from '../../support/seeded-random.ts';
import { enforced, signatureOf } from '../../support/signed-urls.ts';
import { makeTemporaryFolder, type TemporaryFolder } from '../../support/temporary-folder.ts';
import { createTestApp, samples, type TestApp } from '../../support/test-app.ts';

/**
 * How often each is asked. The chance that one of two equal distributions is above the other then comes out within 0.013
 * of a half, in two cases of three.
 */
const ROUNDS = 1_000;

/** Before anything is measured: compiled code, connections, memory. */
const WARM_UP_ROUNDS = 200;

/** How far from a half the chance may be: seven times as much as chance alone makes it. */
const TOLERANCE = 0.1;

const later = Math.floor(Date.now() / 1000) + 86_400;
const random = createSeededRandom('refusal times');

let folder: TemporaryFolder;
let app: TestApp;
let ask: Ask;

beforeAll(async () => {
  folder = await makeTemporaryFolder();
  for (const { channel, isThere } of Object.values({ ...asked, ...different })) {
    // A channel of which all is gone is a folder that is there.
    if (!isThere) await folder.put(`attachments/${channel}/0/another.png`, samples.png);
    for (let round = 0; isThere && round < WARM_UP_ROUNDS + ROUNDS; round += 1) {
      await folder.put(keyOf(channel, round), samples.png);
    }
  }
  app = await createTestApp({
    settings: enforced,
    origin: await createFilesystemOrigin(folder.path),
  });
  ask = createClient(await app.listen());
}, 120_000);
afterAll(async () => {
  await app.close();
  await folder.remove();
});

/** What is asked, and how it is signed. */
interface Question {
  readonly channel: number;
  readonly isThere: boolean;
  readonly sign: (key: string) => string;
}

const keyOf = (channel: number, round: number): string =>
  `attachments/${channel}/${round}/photo.png`;
const wrong = (key: string): string => signatureOf(`${key}?`, later);
const ended = (key: string): string => signatureOf(key, later - 86_400 * 9);
const right = (key: string): string => signatureOf(key, later);

/** What is asked, each round of another attachment: of a channel, all of whose attachments are there, or none. */
const asked: Readonly<Record<string, Question>> = {
  'one that is missing': { channel: 1, isThere: false, sign: right },
  'a wrong signature of one that is there': { channel: 2, isThere: true, sign: wrong },
  'a wrong signature of one that is not': { channel: 3, isThere: false, sign: wrong },
  'an ended URL': { channel: 4, isThere: true, sign: ended },
  'a malformed signature': {
    channel: 5,
    isThere: true,
    sign: (key) => wrong(key).replace('&hm=', '&HM='),
  },
};

/** What takes another time: were a refusal this, it would be seen. */
const different: typeof asked = {
  'one that is shown': { channel: 6, isThere: true, sign: right },
  'one that is refused at once': {
    channel: 7,
    isThere: true,
    sign: (key) => `height=0&${right(key)}`,
  },
};

/** Times in milliseconds by what was asked; all of a round in an order of its own. */
async function measure(parameters: string): Promise<ReadonlyMap<string, readonly number[]>> {
  const questions = Object.entries({ ...asked, ...different });
  const times = new Map(questions.map(([name]) => [name, [] as number[]]));
  for (let round = 0; round < WARM_UP_ROUNDS + ROUNDS; round += 1) {
    const order = questions.map((question) => ({ question, place: random.integer(2 ** 30) }));
    for (const { question } of order.sort((a, b) => a.place - b.place)) {
      const [name, { channel, sign }] = question;
      const key = keyOf(channel, round);
      const path = `/${key}?${sign(key)}${parameters}`;
      const beganMs = performance.now();
      await ask(path);
      if (round >= WARM_UP_ROUNDS) times.get(name)?.push(performance.now() - beganMs);
    }
  }
  return times;
}

/** The chance that a time of one is above a time of the other: Mann and Whitney's U over the number of pairs. */
function chanceAbove(times: readonly number[], others: readonly number[]): number {
  const sorted = [...others].sort((a, b) => a - b);
  let below = 0;
  for (const time of times) {
    let [low, high] = [0, sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((sorted[middle] ?? 0) < time) low = middle + 1;
      else high = middle;
    }
    below += low;
  }
  return below / (times.length * others.length);
}

describe('the time that a refusal takes is that of a missing attachment', () => {
  // The second time, what is not there is remembered.
  test.each([
    ['the original', '', false],
    ['a rendering, at first', '&width=9', false],
    ['the same rendering once more', '&width=9', true],
  ])('asked for %s', { timeout: 300_000 }, async (_, parameters, isRemembered) => {
    const times = await measure(parameters);
    const reference = times.get('one that is missing') ?? [];
    const chances = Object.fromEntries(
      [...times].map(([name, each]) => [name, chanceAbove(each, reference)]),
    );
    for (const name of Object.keys(asked)) {
      expect(Math.abs((chances[name] ?? 0) - 0.5), JSON.stringify(chances)).toBeLessThan(TOLERANCE);
    }
    // What is remembered is served as fast, whatever it is.
    for (const name of isRemembered ? [] : Object.keys(different)) {
      expect(Math.abs((chances[name] ?? 0.5) - 0.5), JSON.stringify(chances)).toBeGreaterThan(
        2 * TOLERANCE,
      );
    }
  });
});
