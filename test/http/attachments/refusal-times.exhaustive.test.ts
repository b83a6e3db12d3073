import { beforeAll, expect, test } from 'vitest';
import { createFilesystemOrigin } from '../../../src/storage/filesystem/filesystem-origin.ts';
import { type Ask, createClient } from '../../support/http/http-client.ts';
import { createSeededRandom } from '../../support/seeded-random.ts';
import { enforced, signatureOf } from '../../support/signed-urls.ts';
import { makeTemporaryFolder } from '../../support/temporary-folder.ts';
import { createTestApp, samples } from '../../support/test-app.ts';

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

/** What is asked, each round of another attachment of a channel, all of whose attachments are there, or none. */
interface Question {
  readonly name: string;
  readonly isThere: boolean;
  readonly sign: (key: string) => string;
}

const wrong = (key: string): string => signatureOf(`${key}?`, later);
const right = (key: string): string => signatureOf(key, later);
const REFERENCE = 'one that is missing';

/** What must take the time of the first. */
const alike: readonly Question[] = [
  { name: REFERENCE, isThere: false, sign: right },
  { name: 'a wrong signature of one that is there', isThere: true, sign: wrong },
  { name: 'a wrong signature of one that is not', isThere: false, sign: wrong },
  { name: 'an ended URL', isThere: true, sign: (key) => signatureOf(key, later - 86_400 * 9) },
  { name: 'a malformed one', isThere: true, sign: (key) => wrong(key).replace('&hm=', '&HM=') },
];

/** What takes another time: were a refusal this, it would be seen. */
const different: readonly Question[] = [
  { name: 'one that is shown', isThere: true, sign: right },
  { name: 'one that is refused at once', isThere: true, sign: (key) => `height=0&${right(key)}` },
];
const questions = [...alike, ...different].map((question, channel) => {
  const keyOf = (round: number): string => `attachments/${channel}/${round}/photo.png`;
  return { ...question, keyOf, channel };
});

let ask: Ask;

beforeAll(async () => {
  const folder = await makeTemporaryFolder();
  for (const { channel, isThere, keyOf } of questions) {
    // A channel of which all is gone is a folder that is there.
    if (!isThere) await folder.put(`attachments/${channel}/0/another.png`, samples.png);
    for (let round = 0; isThere && round < WARM_UP_ROUNDS + ROUNDS; round += 1) {
      await folder.put(keyOf(round), samples.png);
    }
  }
  const origin = await createFilesystemOrigin(folder.path);
  const app = await createTestApp({ settings: enforced, origin });
  ask = createClient(await app.listen());
  return async () => {
    await app.close();
    await folder.remove();
  };
}, 120_000);

/** Times in milliseconds by what was asked; all of a round in an order of its own. */
async function measure(parameters: string): Promise<ReadonlyMap<string, readonly number[]>> {
  const times = new Map(questions.map(({ name }) => [name, [] as number[]]));
  for (let round = 0; round < WARM_UP_ROUNDS + ROUNDS; round += 1) {
    const order = questions.map((question) => ({ question, place: random.integer(2 ** 30) }));
    for (const { question } of order.sort((a, b) => a.place - b.place)) {
      const { name, keyOf, sign } = question;
      const path = `/${keyOf(round)}?${sign(keyOf(round))}${parameters}`;
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

// The second time, what is not there is remembered.
test.each([
  ['the original', '', different],
  ['a rendering, at first', '&width=9', different],
  // What is remembered is served as fast, whatever it is.
  ['the same rendering once more', '&width=9', []],
])(
  'a refusal takes the time of a missing attachment, asked for %s',
  { timeout: 300_000 },
  async (...row) => {
    const [, parameters, others] = row;
    const times = await measure(parameters);
    const reference = times.get(REFERENCE) ?? [];
    const chances = Object.fromEntries(
      [...times].map(([name, each]) => [name, Math.abs(chanceAbove(each, reference) - 0.5)]),
    );
    for (const { name } of alike)
      expect(chances[name], JSON.stringify(chances)).toBeLessThan(TOLERANCE);
    for (const { name } of others) {
      expect(chances[name], JSON.stringify(chances)).toBeGreaterThan(2 * TOLERANCE);
    }
  },
);
