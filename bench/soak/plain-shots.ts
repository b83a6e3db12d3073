import type { Random } from '../harness/random.ts';
import { get, type Question } from './exchange.ts';
import type { Original } from './originals.ts';
import { type Shot, targetOf } from './shots.ts';

/** Larger ones take a slow reader longer than is needed to see that it holds nothing up. */
const LARGEST_SLOW_BYTES = 6_000_000;

/** A slow reader takes a piece (some 64 KiB) and then rests so long, in milliseconds. */
const REST_MS = 100;

/** A range, the status of its response, and the body. */
type Form = readonly [range: string, status: number, readBody: Shot['readBody']];

/** A file as it is, to its end. */
export function fileShot(file: Original): Shot {
  return {
    question: get(targetOf(file)),
    needsOrigin: true,
    expected: [200],
    render: 'none',
    readBody: file.read,
  };
}

/** A part of a file, in one of the forms that a `Range` header may have (RFC 9110 §14.1.2). */
export function rangeShot(file: Original, random: Random): Shot {
  const { sizeBytes } = file;
  const first = random.integer(0, sizeBytes - 1);
  const last = Math.min(sizeBytes - 1, first + Math.round(random.spread(1, 1_000_000)));
  const length = random.integer(1, Math.min(sizeBytes, 200_000));
  const suffix = (): Buffer => file.read().subarray(sizeBytes - length);
  const middle = (): Buffer => file.read().subarray(first, last + 1);
  const [range, status, readBody] = random.pick<Form>([
    [`${first}-${last}`, 206, middle],
    [`${sizeBytes - length}-`, 206, suffix],
    [`-${length}`, 206, suffix],
    // Several ranges: all of it.
    ['0-0,2-3', 200, file.read],
    [`${sizeBytes}-`, 416, undefined],
  ]);
  return {
    ...fileShot(file),
    question: get(targetOf(file), { range: `bytes=${range}` }),
    expected: [status],
    readBody,
  };
}

/** A client that hangs up somewhere in the body. */
export function leaveBodyShot(file: Original, random: Random): Shot {
  const shot = fileShot(file);
  const afterBytes = random.integer(1, Math.ceil(file.sizeBytes / 2));
  return {
    ...shot,
    question: { ...shot.question, manner: { kind: 'leaves body', afterBytes } },
    readBody: undefined,
  };
}

/** A client that takes its time. */
export function slowShot(files: readonly Original[], random: Random): Shot {
  const file = random.pick(files.filter(({ sizeBytes }) => sizeBytes < LARGEST_SLOW_BYTES));
  const shot = fileShot(file);
  return {
    ...shot,
    question: { ...shot.question, manner: { kind: 'dawdles', pauseMs: REST_MS } },
  };
}

/** What no client should send, with the status that the contract has for it. */
const BAD_REQUESTS: readonly (readonly [Question, number])[] = [
  [get('/avatars/x/ab.bmp?size=63&quality=best'), 400],
  [get('/avatars/1/ab12.webp?size=128.0'), 400],
  [get('/avatars/1/ab12.webp?size=64&size=64'), 400],
  [get('/avatars/1/ab12.webp?animated=1'), 400],
  [get('/avatars/18446744073709551616/ab12.webp'), 400],
  [get(`/avatars/1/${'a'.repeat(6_000)}.webp`), 400],
  [get('/attachments/1/1/%ff.png?width=9999'), 400],
  [get('/attachments/1/1/..%2f..%2fetc%2fpasswd'), 400],
  [get('/stickers/1.png'), 400],
  [get('/'), 404],
  [get('/favicon.ico'), 404],
  [get('/embed/avatars/0.png'), 404],
  [{ ...get('/avatars/1/ab12.webp'), method: 'POST' }, 405],
  [{ ...get('/avatars/1/ab12.webp'), method: 'DELETE' }, 405],
  [{ ...get('/avatars/1/ab12.webp'), method: 'OPTIONS' }, 204],
];

/** One of the requests above. */
export function badShot(random: Random): Shot {
  const [question, status] = random.pick(BAD_REQUESTS);
  return { question, needsOrigin: false, expected: [status], render: 'none' };
}

/** Something that is not in the bucket. */
export function unknownShot(random: Random): Shot {
  const id = random.integer(1, 2 ** 40);
  const key = random.pick([
    `avatars/${id}/nothing`,
    `emojis/${id}`,
    `attachments/1/${id}/nothing.bin`,
  ]);
  const path = key.startsWith('attachments/') ? `/${key}` : `/${key}.webp`;
  return { question: get(path), needsOrigin: true, expected: [404], render: 'none' };
}

/** One of the six default avatars, or one of none. */
export function defaultAvatarShot(random: Random): Shot {
  const index = random.integer(0, 7);
  const expected = [index < 6 ? 200 : 404];
  return { question: get(`/avatars/${index}.png`), needsOrigin: false, expected, render: 'none' };
}
