import {
  type AttachmentSigning,
  type SignatureVerdict,
  signAttachment,
} from '../../src/contract/signing/attachment-signature.ts';
import { SigningKeys } from '../../src/contract/signing/signing-keys.ts';

const domain = 'attachment-url-v1';
const keys = [
  'an-example-key-of-thirty-two-bytes-or-more',
  'ein Schlüssel, dessen Bytes die seines UTF-8 sind',
];

/** Id created on 2025-11-21 at 23:04:32.037. */
const id = String((1_763_766_272_037n - 1_420_070_400_000n) << 22n);
const madeAt = 1_763_766_272;

/** Attachments that reveal common mistakes, and the time of each signature in seconds since 1970. */
const signed = [
  ['155369344', '155369345', 'cat picture.png', madeAt],
  ['155369344', id, 'cat.png', madeAt],
  ['155369344', id, 'cat.png', madeAt + 43_199],
  ['155369344', id, 'cat.png', madeAt + 43_200],
  ['155369344', id, 'cat.png', madeAt + 10_000 * 43_200 - 1],
  // Signed by a clock that is behind the clock of the id.
  ['155369344', id, 'cat.png', madeAt - 1],
  ['0', '0', 'the beginning of time.txt', madeAt],
  ['9223372036854775807', '1476666666666666667', 'my photo é.png', madeAt],
  ['155369344', '155369345', 'what? a=b+c;d:e@f,g\'"<>|^`{}[]~!$*()#%20&.png', madeAt],
  ['155369344', '155369345', '写真 🎉.jpg', madeAt],
] as const;

/** Contents of `docs/attachment-vectors.json`, which `npm run docs` writes. */
export const attachmentVectors = {
  about: [
    'Test vectors of signed attachments; docs/signing.md describes the signature.',
    'signed: a key, an attachment, the time in Unix seconds, and the URL signed at that time.',
    'judged: a URL, the time, and the verdict on its signature if all keys are accepted. Only valid is served.',
    'File names can be percent-encoded in any way that decodes to them.',
  ],
  keys,
  domain,
  signed: signed.flatMap(([channel, attachmentId, name, now]) =>
    keys.map((key) => {
      const attachment = `attachments/${channel}/${attachmentId}/${name}`;
      return { key, attachment, now, url: sign(attachment, now, key) };
    }),
  ),
  judged: createVectors(),
};

function createVectors() {
  const attachment = 'attachments/155369344/155369345/cat.png';
  const path = `/${attachment}`;
  const at = 0x69224180 - 1;
  const [ex, is] = ['69224180', '6920f000'];
  const [first, second] = keys.map((key) =>
    hmacOf(key, `${domain}\n${ex}\n${is}\n\n${attachment}`),
  );
  const good = `ex=${ex}&is=${is}&hm=${first}`;
  const ofExport = hmacOf(keys[0], `${domain}\n00000000\n${is}\ndp\n${attachment}`);
  const rows: Readonly<Record<SignatureVerdict, Readonly<Record<string, string>>>> = {
    valid: {
      'its last second': good,
      'another key': `ex=${ex}&is=${is}&hm=${second}`,
      'any order, with parameters that are not signed': `width=80&hm=${first}&format=webp&is=${is}&ex=${ex}`,
      'a data export': `ex=0&is=${is}&uc=dp&hm=${ofExport}`,
    },
    missing: { 'no signature': '', 'none of its parameters': 'width=80' },
    malformed: {
      'no hm': `ex=${ex}&is=${is}`,
      'hm alone': `hm=${first}`,
      'ex twice': `${good}&ex=${ex}`,
      'upper case': `ex=${ex}&is=${is}&hm=${first?.toUpperCase()}`,
      'an escape': good.replace('&hm=', '&h%6d='),
      'a prefix': `ex=0x${ex}&is=${is}&hm=${first}`,
      'decimal digits': `ex=${Number.parseInt(ex, 16)}&is=${is}&hm=${first}`,
      'seven digits': `ex=${ex.slice(1)}&is=${is}&hm=${first}`,
      base64: `ex=${ex}&is=${is}&hm=${Buffer.from(first ?? '', 'hex').toString('base64url')}`,
      'an invalid use': `${good}&uc=xx`,
      'an empty use': `${good}&uc=`,
      'no expiry, but not a data export': `ex=0&is=${is}&hm=${ofExport}`,
      'a data export that expires': `ex=00000000&is=${is}&uc=dp&hm=${ofExport}`,
    },
    mismatch: {
      'a later end': good.replace(ex, '69224181'),
      'another issue': good.replace(is, '6920f001'),
      'another use': `ex=0&is=${is}&uc=dp&hm=${first}`,
      'a key that is not accepted': `ex=${ex}&is=${is}&hm=${hmacOf('x'.repeat(32), `${domain}\n${ex}\n${is}\n\n${attachment}`)}`,
      'the encoded path instead of the key': `ex=${ex}&is=${is}&hm=${hmacOf(keys[0], `${domain}\n${ex}\n${is}\n\n${path}`)}`,
      'another domain': `ex=${ex}&is=${is}&hm=${hmacOf(keys[0], `other\n${ex}\n${is}\n\n${attachment}`)}`,
      'no line for the use': `ex=${ex}&is=${is}&hm=${hmacOf(keys[0], `${domain}\n${ex}\n${is}\n${attachment}`)}`,
    },
    expired: {},
  };
  const urls = Object.entries(rows).flatMap(([verdict, queries]) =>
    Object.entries(queries).map(([why, query]) => ({
      why,
      at,
      verdict,
      url: query === '' ? path : `${path}?${query}`,
    })),
  );
  return [
    ...urls,
    { why: 'its end', at: at + 1, verdict: 'expired', url: `${path}?${good}` },
    {
      why: 'the signature of another name',
      at,
      verdict: 'mismatch',
      url: `${path.replace('cat', 'dog')}?${good}`,
    },
  ];
}

function hmacOf(key = '', message: string): string {
  return new SigningKeys([key]).sign(message, 'hex');
}

function sign(attachment: string, now: number, key: string): string {
  const signing: AttachmentSigning = { keys: new SigningKeys([key]), domain };
  const url = signAttachment(attachment, signing, now * 1000);
  if (url === undefined) throw new Error(`Not an attachment: ${attachment}`);
  return url;
}
