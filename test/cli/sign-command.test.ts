import { describe, expect, test } from 'vitest';
import { judgeSignature } from '../../src/contract/signing/attachment-signature.ts';
import { SigningKeys } from '../../src/contract/signing/signing-keys.ts';
import { runDarkroom } from '../support/processes/command-line.ts';

const EXTERNAL_SIGNING_KEYS = 'an-example-key-of-thirty-two-bytes-or-more';

async function sign(url: string, environment: Readonly<Record<string, string>>) {
  const { status, stdout, stderr } = await runDarkroom(['sign', url], { environment });
  return [status, stdout.toString(), stderr];
}

describe('darkroom sign', () => {
  test('prints the path of a URL, with the first key', async () => {
    const path =
      '/external/-tr41TTaeUQAml3n4juS1cw_XhDhYaBIPXQnzkoE8t8/v2/aHR0cHM6Ly9tZWRpYS5leGFtcGxlLm9yZy9hJTIwYi9jYXQucG5nP3c9MSZoPTI\n';
    const url = 'https://media.example.org/a%20b/cat.png?w=1&h=2';
    expect(await sign(url, { EXTERNAL_SIGNING_KEYS })).toEqual([0, path, '']);
    const rotated = `${EXTERNAL_SIGNING_KEYS},the-key-of-last-month-which-still-verifies`;
    expect(await sign(url, { EXTERNAL_SIGNING_KEYS: rotated })).toEqual([0, path, '']);
  });

  test.each([
    ['attachments/1/1476666666666666667/my photo é.png'],
    ['/attachments/1/1476666666666666667/my%20photo%20%C3%A9.png'],
  ])('prints the path of the attachment %s', async (what) => {
    const environment = { ATTACHMENT_SIGNING_KEYS: EXTERNAL_SIGNING_KEYS };
    const [status, path = '', stderr] = await sign(what, environment);
    expect([status, stderr]).toEqual([0, '']);
    const [, query = ''] =
      /^\/attachments\/1\/1476666666666666667\/my%20photo%20%C3%A9\.png\?(.*)\n$/.exec(
        String(path),
      ) ?? [];
    const signing = {
      keys: new SigningKeys([EXTERNAL_SIGNING_KEYS]),
      domain: 'attachment-url-v1',
    };
    const key = 'attachments/1/1476666666666666667/my photo é.png';
    expect(judgeSignature(query, key, signing, Date.now()).verdict).toBe('valid');
  });

  test.each([
    [
      'attachments/1/2/cat.png',
      { EXTERNAL_SIGNING_KEYS },
      1,
      'no key is set; see ATTACHMENT_SIGNING_KEYS in docs/configuration.md',
    ],
    [
      'attachments/1/02/cat.png',
      { ATTACHMENT_SIGNING_KEYS: EXTERNAL_SIGNING_KEYS },
      64,
      '"attachments/1/02/cat.png" is no key and no path of an attachment',
    ],
    [
      'https://a.example/',
      {},
      1,
      'no key is set; see EXTERNAL_SIGNING_KEYS in docs/configuration.md',
    ],
    ['cat.png', { EXTERNAL_SIGNING_KEYS }, 64, 'nothing would be fetched from there: no url'],
    [
      'ftp://a.example/',
      { EXTERNAL_SIGNING_KEYS },
      1,
      'nothing would be fetched from there: scheme',
    ],
    [
      'http://0x7f.1/',
      { EXTERNAL_SIGNING_KEYS },
      1,
      'nothing would be fetched from there: loopback',
    ],
    [
      'https://a.example/',
      { EXTERNAL_SIGNING_KEYS, EXTERNAL_BLOCKED_HOSTS: 'example' },
      1,
      'nothing would be fetched from there: host not allowed',
    ],
  ])('refuses %s with %j', async (url, environment, status, message) => {
    expect(await sign(url, environment)).toEqual([status, '', `darkroom: ${message}\n`]);
  });

  test('shows no key that is none', async () => {
    const [status, , stderr] = await sign('https://a.example/', {
      EXTERNAL_SIGNING_KEYS: 'short-key',
    });
    expect(status).toBe(78);
    expect(stderr).not.toContain('short-key');
  });
});
