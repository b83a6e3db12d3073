import type { Random } from '../harness/random.ts';
import { get, type Question } from './exchange.ts';
import type { Shot } from './shot.ts';

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
  [get('/avatars/../../etc/passwd'), 404],
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
