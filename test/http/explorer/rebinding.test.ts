import { describe, expect, it } from 'vitest';
import { isRebound } from '../../../src/http/explorer/rebinding.ts';

const arrivalAt = (localAddress: string | undefined, host: string | undefined) => ({
  headers: { ...(host !== undefined && { host }) },
  socket: { localAddress },
});

const own = ['127.0.0.1', '127.8.9.1', '::1', '::ffff:127.0.0.1'];
/** Where Node does not know the address, it is taken for our own. */
const unknown = [undefined];
const networks = ['192.0.2.7', '10.0.0.1', '2001:db8::1', '::ffff:192.0.2.7', '::12'];

const trusted = [
  ...['localhost', 'localhost:3000', 'LocalHost:3000', 'pictures.localhost:3000', 'a.b.localhost'],
  ...['127.0.0.1:3000', '192.0.2.7', '[::1]:3000', '[::1]'],
];
const suspicious = [
  ...['evil.example:3000', 'evil.example', 'localhost.evil.example:3000', 'notlocalhost:3000'],
  ...['127.0.0.1.evil.example:3000', '127.0.0.1@evil.example', '[evil.example]:3000'],
  ...['.localhost', '', ':3000', undefined],
];

describe('a request', () => {
  it.each([
    // No one can point such a name elsewhere.
    ...trusted.map((host) => ({ host, at: own, isSuspicious: false })),
    ...suspicious.map((host) => ({ host, at: own, isSuspicious: true })),
    { host: 'evil.example', at: unknown, isSuspicious: true },
    { host: 'localhost', at: unknown, isSuspicious: false },
    { host: 'media.example', at: networks, isSuspicious: false },
    { host: undefined, at: networks, isSuspicious: false },
  ])('for $host at $at is suspicious: $isSuspicious', ({ host, at, isSuspicious }) => {
    for (const address of at) expect(isRebound(arrivalAt(address, host))).toBe(isSuspicious);
  });
});
