import { describe, expect, it } from 'vitest';
import { isRebound } from '../../../src/http/explorer/rebinding.ts';

const arrivalAt = (localAddress: string | undefined, host: string | undefined) => ({
  headers: { ...(host !== undefined && { host }) },
  socket: { localAddress },
});

describe('a request to this machine itself', () => {
  const own = ['127.0.0.1', '127.8.9.1', '::1', '::ffff:127.0.0.1'];

  it.each([
    'localhost',
    'localhost:3000',
    'LocalHost:3000',
    'pictures.localhost:3000',
    'a.b.localhost',
    '127.0.0.1:3000',
    '192.0.2.7',
    '[::1]:3000',
    '[::1]',
  ])('is trusted where no one can point the name elsewhere: %s', (host) => {
    for (const address of own) expect(isRebound(arrivalAt(address, host)), address).toBe(false);
  });

  it.each([
    'evil.example:3000',
    'evil.example',
    'localhost.evil.example:3000',
    'notlocalhost:3000',
    '127.0.0.1.evil.example:3000',
    '127.0.0.1@evil.example',
    '[evil.example]:3000',
    '.localhost',
    '',
    ':3000',
    undefined,
  ])('is suspicious under any other name: %s', (host) => {
    for (const address of own) expect(isRebound(arrivalAt(address, host)), address).toBe(true);
  });

  it('is one too where Node does not know the address', () => {
    expect(isRebound(arrivalAt(undefined, 'evil.example'))).toBe(true);
    expect(isRebound(arrivalAt(undefined, 'localhost'))).toBe(false);
  });
});

describe('a request to an address of a network', () => {
  it.each(['192.0.2.7', '10.0.0.1', '2001:db8::1', '::ffff:192.0.2.7', '::12'])(
    'may come by any name: %s',
    (address) => {
      expect(isRebound(arrivalAt(address, 'media.example'))).toBe(false);
      expect(isRebound(arrivalAt(address, undefined))).toBe(false);
    },
  );
});
