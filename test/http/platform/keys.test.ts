import { expect, test } from 'vitest';
import { samples, useTestApp } from '../../support/test-app.ts';

// Contract §14: a signer of the platform decodes its key. The URLs are examples of what it gives out.

const settings = {
  ATTACHMENT_SIGNING: 'enforce',
  ATTACHMENT_SIGNING_DOMAIN: 'fluxer-attachment-url-v1',
  ATTACHMENT_SIGNING_KEYS: 'base64:O0Jjj3LjI5NdO+kLw7XCaNo6cQtpALQD72QHlCwiCHE=',
};
const KEY = 'attachments/1400000000000000000/1500000000000000000/naïve cat.png';
const path = `/${KEY.split('/').map(encodeURIComponent).join('/')}`;
const ends = `${path}?ex=69f7801c&is=69f62e9c&hm=5fdbabbacd0073fae47836355f022c2dd138e77057b120813c987cf20541d5dd`;
const lasts = `${path}?ex=0&is=69f62e9c&hm=d97b175f63a9063a0e6f89145b222777ac403e584f7f3384523cc00b2b479de7&uc=dp`;

test.each<[string, number, number, string?]>([
  [ends, 1_777_748_268, 200],
  [ends, 0x69f7801c - 1, 200],
  [ends, 0x69f7801c, 404],
  [ends.replace('5fdb', '5fdc'), 1_777_748_268, 404],
  [lasts, 4_000_000_000, 200],
  [path, 1_777_748_268, 404],
  // Undecoded, the text of the key is another key.
  [ends, 1_777_748_268, 404, settings.ATTACHMENT_SIGNING_KEYS.replace('base64:', '')],
])("%s of the platform's signer at %i: %i", async (url, seconds, status, key) => {
  const { get, originals } = await useTestApp({
    settings: { ...settings, ...(key && { ATTACHMENT_SIGNING_KEYS: key }) },
    wallClock: () => seconds * 1000,
  });
  originals.put(KEY, samples.png);
  expect((await get(url)).statusCode).toBe(status);
});
