import { describe, expect, test } from 'vitest';
import {
  findRelayKeyFaults,
  formatRelayPath,
  isRelayPath,
  readRelayKey,
} from '../../../src/contract/signing/relay-path.ts';

describe('the path of an upload', () => {
  test.each([
    ['/v1/relay/avatars/1/ab12', 'avatars/1/ab12'],
    ['/v1/relay/emojis/1', 'emojis/1'],
    ['/v1/relay/guilds/1/users/2/banners/ab12', 'guilds/1/users/2/banners/ab12'],
    ['/v1/relay/attachments/1/2/cat%20picture.png', 'attachments/1/2/cat picture.png'],
    ['/v1/relay/attachments/1/2/%C3%A9%3F%26%23.png', 'attachments/1/2/é?&#.png'],
    ['/v1/relay/attachments/1/2/a%252fb', 'attachments/1/2/a%2fb'],
    ['/v1/relay/%61vatars/1/ab12', 'avatars/1/ab12'],
  ])('names a key: %s', (path, key) => {
    expect(isRelayPath(path)).toBe(true);
    expect(readRelayKey(path)).toBe(key);
    expect(findRelayKeyFaults(path)).toEqual([]);
    expect(readRelayKey(formatRelayPath(key, 'x').split('?', 1)[0] ?? '')).toBe(key);
  });

  test.each([
    ['/v1/relay/secrets/1', 'a folder that is no resource'],
    ['/v1/relay/external/ab12', 'another site'],
    ['/v1/relay/avatars/1/ab12.webp', 'an extension'],
    ['/v1/relay/avatars/1/a_ab12', 'the mark of an animation, which no stored key has'],
    ['/v1/relay/avatars/01/ab12', 'an id with a leading zero'],
    ['/v1/relay/avatars/3', 'a default avatar'],
    ['/v1/relay/avatars/1', 'too few segments'],
    ['/v1/relay/avatars/1/ab12/', 'a slash at the end'],
    ['/v1/relay//avatars/1/ab12', 'an empty segment'],
    ['/v1/relay/avatars/1/../2/ab12', 'dots'],
    ['/v1/relay/avatars/1/%2e%2e', 'encoded dots'],
    ['/v1/relay/attachments/1/2/..', 'dots for a file name'],
    ['/v1/relay/attachments/1/2/%2e%2e', 'encoded dots for a file name'],
    ['/v1/relay/attachments/1/2/a%2fb', 'an encoded slash in a file name'],
    ['/v1/relay/attachments/1/2%2fname', 'an encoded slash between segments'],
    ['/v1/relay/avatars%2F1%2Fab12', 'no slash but encoded ones'],
    ['/v1/relay/attachments/1/2/a%5Cb', 'an encoded backslash'],
    ['/v1/relay/attachments/1/2/a%00b', 'a control character'],
    ['/v1/relay/attachments/1/2/%zz', 'a malformed escape'],
    ['/v1/relay/attachments/1/2/%ff', 'no UTF-8'],
    ['/v1/relay/attachments/1/2/\u00e9', 'a raw character beyond ASCII'],
    [`/v1/relay/attachments/1/2/${'a'.repeat(256)}`, 'a file name of 256 bytes'],
  ])('is refused where it names none: %s (%s)', (path) => {
    expect(isRelayPath(path)).toBe(true);
    expect(findRelayKeyFaults(path)).toMatchObject([{ path: 'key' }]);
  });

  test.each(['/v1/relay', '/v1/relay/', '/v1/relayed/x', '/V1/relay/x', '//v1/relay/x', '/'])(
    'is none: %s',
    (path) => {
      expect(isRelayPath(path)).toBe(false);
    },
  );
});
