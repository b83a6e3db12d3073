import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { faultsOf } from '../support/setting-faults.ts';
import { useTemporaryFolder } from '../support/temporary-folder.ts';

const key = 'an-example-key-of-thirty-two-bytes-or-more';
const former = 'the-key-of-last-month-which-still-verifies';

describe('signed attachments', () => {
  test('are off, and may have keys already', () => {
    expect(readConfig({}).attachments).toEqual({ mode: 'off', signing: undefined });
    const { attachments } = readConfig({ ATTACHMENT_SIGNING_KEYS: key });
    expect(attachments.mode).toBe('off');
    expect(attachments.signing?.domain).toBe('attachment-url-v1');
    expect(attachments.signing?.keys.secrets).toEqual([key]);
  });

  test('take their keys from a variable or a file', async () => {
    const { path, put } = await useTemporaryFolder();
    await put('keys', `${key}\n${former}\n`);
    const sources = [
      { ATTACHMENT_SIGNING_KEYS: `${key},${former}` },
      { ATTACHMENT_SIGNING_KEYS_FILE: join(path, 'keys') },
    ];
    for (const source of sources) {
      const settings = {
        ATTACHMENT_SIGNING: 'enforce',
        ATTACHMENT_SIGNING_DOMAIN: 'v7',
        ...source,
      };
      const { attachments, signingKeys } = readConfig(settings);
      expect(attachments).toMatchObject({ mode: 'enforce', signing: { domain: 'v7' } });
      expect(attachments.signing?.keys.secrets).toEqual([key, former]);
      expect(signingKeys.flatMap(({ secrets }) => secrets)).toEqual([key, former]);
    }
  });

  test.each([
    [
      { ATTACHMENT_SIGNING: 'report' },
      'ATTACHMENT_SIGNING_KEYS: expected a key, since ATTACHMENT_SIGNING is report but received nothing',
    ],
    [
      { ATTACHMENT_SIGNING: 'enforce' },
      'ATTACHMENT_SIGNING_KEYS: expected a key, since ATTACHMENT_SIGNING is enforce but received nothing',
    ],
    [
      { ATTACHMENT_SIGNING: 'on' },
      'ATTACHMENT_SIGNING: expected off or report or enforce but received "on"',
    ],
    [
      { ATTACHMENT_SIGNING_KEYS: 'short' },
      'ATTACHMENT_SIGNING_KEYS: expected one key or several, separated by commas, each of 32 bytes at least but received ***',
    ],
    [
      { ATTACHMENT_SIGNING_KEYS: key, ATTACHMENT_SIGNING_KEYS_FILE: '/nowhere' },
      'ATTACHMENT_SIGNING_KEYS_FILE: expected a readable file of keys, one a line, each of 32 bytes at least but received ***',
    ],
    [
      { ATTACHMENT_SIGNING_DOMAIN: 'two\nlines' },
      'ATTACHMENT_SIGNING_DOMAIN: expected a text of one line, 256 bytes at most but received ***',
    ],
  ])('refuse %j', (given, fault) => {
    expect(faultsOf(given)).toContain(fault);
  });

  test('are no reason to show all originals', () => {
    expect(readConfig({ ATTACHMENT_SIGNING_KEYS: key }).explorer.isOn).toBe(false);
    const asked = readConfig({ ATTACHMENT_SIGNING_KEYS: key, EXPLORER: 'on' });
    expect(asked.explorer).toEqual({ isOn: true, isExposed: false });
  });
});
