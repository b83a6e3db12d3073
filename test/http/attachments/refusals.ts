import { expect } from 'vitest';
import { sendBytes } from '../../support/http/raw-http.ts';
import { enforced, formatTime, signatureOf, signedPath } from '../../support/signed-urls.ts';
import { samples, shareTestApp, type TestApp } from '../../support/test-app.ts';

/** The time of the tests, and when URLs end that have not ended yet, in seconds. */
export const now = Date.UTC(2026, 0, 1) / 1000;
export const later = now + 3_600;

/** A service that demands signatures, whose time a test can set. */
export interface EnforcingApp {
  readonly app: TestApp;
  /** Seconds since 1970. */
  time: number;
}

/** How URLs are refused: the query that each has in the place of its signature. */
export const refusals: Readonly<Record<string, (key: string) => string>> = {
  'none of a signature': () => '',
  'no hm': (key) => signatureOf(key, later).replace(/&hm=.*/, ''),
  'hm alone': (key) => signatureOf(key, later).replace(/^.*&hm=/, 'hm='),
  'hm twice': (key) => `${signatureOf(key, later)}&hm=${'0'.repeat(64)}`,
  'upper case': (key) =>
    signatureOf(key, later)
      .toUpperCase()
      .replaceAll(/[A-Z]{2}=/g, (name) => name.toLowerCase()),
  'an escape': (key) => signatureOf(key, later).replace('&hm=', '&h%6d='),
  'another end': (key) => signatureOf(key, later).replace(/^ex=\w+/, `ex=${formatTime(later + 1)}`),
  'the signature of another': (key) => signatureOf(`${key}2`, later),
  'a foreign key': (key) => signatureOf(key, later, 'x'.repeat(32)),
  'an end that has come': (key) => signatureOf(key, now),
  'an end long ago': (key) => signatureOf(key, now - 1e6),
  'a use that is none': (key) => `${signatureOf(key, later)}&uc=xx`,
  'a data export of nobody': (key) => `uc=dp&${signatureOf(key, later).replace(/^ex=\w+/, 'ex=0')}`,
};

export interface Asked {
  readonly method?: string;
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What is asked of each of them, and of one that is missing. */
export const questions: Readonly<Record<string, (etag: string) => Asked>> = {
  'the original': () => ({}),
  'a rendering': () => ({ query: 'width=20&format=webp' }),
  'a crop': () => ({ query: 'width=20&height=10&format=jpeg&quality=low' }),
  'an animation': () => ({ query: 'animated=true&format=webp' }),
  'a HEAD': () => ({ method: 'HEAD' }),
  'a HEAD of a rendering': () => ({ method: 'HEAD', query: 'width=20' }),
  'a range': () => ({ headers: { Range: 'bytes=2-9' } }),
  'a suffix': () => ({ headers: { Range: 'bytes=-5' } }),
  'the beginning': () => ({ headers: { Range: 'bytes=0-' } }),
  'an impossible range': () => ({ headers: { Range: 'bytes=99999999-' } }),
  'several ranges': () => ({ headers: { Range: 'bytes=0-1,4-5' } }),
  'a range of a rendering': () => ({ query: 'width=20', headers: { Range: 'bytes=2-9' } }),
  'a range on a condition': (etag) => ({ headers: { Range: 'bytes=2-9', 'If-Range': etag } }),
  'its entity tag': (etag) => ({ headers: { 'If-None-Match': etag } }),
  'any entity tag': () => ({ headers: { 'If-None-Match': '*' } }),
  'any of a rendering': () => ({ query: 'width=20', headers: { 'If-None-Match': '*' } }),
  'a date': () => ({ headers: { 'If-Modified-Since': new Date().toUTCString() } }),
  'a wrong parameter': () => ({ query: 'width=0' }),
  'several wrong ones': () => ({ query: 'width=0&height=x&format=bmp&quality=best' }),
  'a parameter twice': () => ({ query: 'width=20&width=20' }),
  'a wrong parameter by HEAD': () => ({ method: 'HEAD', query: 'width=0' }),
  'an unknown parameter': () => ({ query: 'v=7' }),
  'a preflight': () => ({ method: 'OPTIONS', headers: { Origin: 'https://a.example' } }),
  'a method that is not allowed': () => ({ method: 'DELETE' }),
  'its own id': () => ({ headers: { 'X-Request-Id': 'of-the-test' } }),
};

/** A response to the byte, but for what differs between two of the same: date, id, durations. */
export async function ask(
  app: TestApp,
  key: string,
  signature: string,
  asked: Asked,
): Promise<string> {
  const { method = 'GET', query = '', headers = {} } = asked;
  const parameters = [query, signature].filter((part) => part !== '').join('&');
  const target = `/${key}${parameters === '' ? '' : `?${parameters}`}`;
  const fields = Object.entries({ Host: 'cdn.example', Connection: 'close', ...headers });
  const head = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  const bytes = await sendBytes(await app.listen(), `${method} ${target} HTTP/1.1\r\n${head}\r\n`);
  return bytes
    .toString('latin1')
    .replace(/^(date|x-request-id): (?!of-the-test)\S.*$/gim, '$1: …')
    .replaceAll(/;dur=[\d.]+/g, ';dur=…');
}

/** One for all tests of a file. */
export function shareEnforcingApp(): EnforcingApp {
  const service = { time: now };
  const app = shareTestApp({ settings: enforced, wallClock: () => service.time * 1000 });
  return Object.assign(service, { app });
}

let keys = 0;

/** The key of a picture that no other test has. */
export function newKey(): string {
  keys += 1;
  return `attachments/1/${keys}/photo.png`;
}

/** A refused URL, of a picture that is there or of one that is not, gets what a good URL of a missing one gets. */
export async function expectAlike(
  { app }: EnforcingApp,
  refuse: (key: string) => string,
  question: (etag: string) => Asked,
): Promise<void> {
  const [present, absent, missing] = [newKey(), newKey(), newKey()];
  app.originals.put(present, samples.png);
  const shown = await app.send('GET', signedPath(present, later));
  expect(shown.status).toBe(200);
  const asked = question(shown.headers.etag ?? '');
  // Cold, and once more: what is not there is remembered.
  for (const _ of [1, 2]) {
    const expected = await ask(app, missing, signatureOf(missing, later), asked);
    for (const key of [present, absent])
      expect(await ask(app, key, refuse(key), asked)).toBe(expected);
  }
}
