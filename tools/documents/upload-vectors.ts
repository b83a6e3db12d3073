import { RELAY_PREFIX } from '../../src/contract/signing/relay-capability.ts';
import { SigningKeys } from '../../src/contract/signing/signing-keys.ts';

/** Fields of a capability, without `m`. */
type CapabilityFields = Readonly<Record<string, string | number | boolean>> & {
  readonly k: string;
  readonly e: number;
};

const bucket = 'originals';
const keys = [
  'an-example-key-of-thirty-two-bytes-or-more',
  'ein Schlüssel, dessen Bytes die seines UTF-8 sind',
];

const end = 1_763_766_572;

/** Uploads that reveal common mistakes. */
const signed: readonly CapabilityFields[] = [
  { k: 'attachments/155369344/155369345/cat picture.png', e: end },
  { k: 'avatars/155369344/0123456789abcdef0123456789abcdef', e: end, ct: 'image/png', mb: 262_144 },
  { k: 'attachments/1/2/notes.txt', e: end, b: bucket, ct: 'text/plain; charset=utf-8', mb: 0 },
  { k: 'emojis/155369345', e: end, o: true },
  { k: 'attachments/1/2/IMG_0001.HEIC', e: end, s: true },
  { k: 'attachments/1/2/what? a=b+c;d:e@f,g\'"<>|^`{}[]~!$*()#%20&.png', e: end },
  { k: 'attachments/1/2/写真 🎉.jpg', e: end, ct: 'image/jpeg' },
];

const object = 'attachments/155369344/155369345/cat.bin';
const fields = { k: object, m: 'put', e: end };
const part = { u: '2~abc', p: 7 };

/** Contents of `docs/upload-vectors.json`, which `npm run docs` writes. */
export const uploadVectors = {
  about: [
    'Test vectors of capabilities of uploads; docs/signing.md describes the capabilities.',
    'signed: a key, the fields of a capability without m, and the path of the upload, which is valid until e.',
    'judged: a path, the time in Unix seconds, and the status of an empty upload to it with Content-Length: 0,',
    'if all keys are accepted, S3_BUCKET is that of bucket, and nothing is stored yet.',
    'The JSON can have any equivalent spelling with each field once. The path can have any encoding that decodes to it.',
  ],
  keys,
  bucket,
  signed: signed.flatMap((fields) =>
    keys.map((key) => ({
      key,
      fields,
      path: formatRelayPath(fields.k, sign(JSON.stringify({ m: 'put', ...fields }), key)),
    })),
  ),
  judged: createVectors(),
};

/** Signs the JSON of a capability, or any other text, with the first key, like the platform. */
export function signCapabilityText(json: string, keys: SigningKeys): string {
  const payload = Buffer.from(json, 'utf8').toString('base64url');
  return `${payload}.${keys.sign(payload, 'base64url')}`;
}

/** Formats the path of an upload, with its capability. */
export function formatRelayPath(key: string, capability: string): string {
  return `${RELAY_PREFIX}${key.split('/').map(encodeURIComponent).join('/')}?t=${capability}`;
}

/** Formats the path of `object` with a capability, and more parameters in `rest`. */
function to(capability: string, rest = ''): string {
  return `${formatRelayPath(object, capability)}${rest}`;
}

/** Returns the capability for an object, which becomes JSON, or for any text. */
function of(value: object | string, key?: string): string {
  return sign(typeof value === 'string' ? value : JSON.stringify(value), key);
}

/** Formats the path of a key with a capability for the same key. */
function at(k: string): string {
  return formatRelayPath(k, of({ ...fields, k }));
}

function createVectors() {
  const signer = new SigningKeys([keys[0] ?? '']);
  const good = of(fields);
  const [payload = '', signature = ''] = good.split('.');
  const second = of(fields, keys[1]);
  // The trailing space makes base64 pad the text.
  const padded = Buffer.from(`${JSON.stringify(fields)} `).toString('base64');
  /** Descriptions and paths by the status that the head and the capability of an upload lead to. */
  const rows: Readonly<Record<number, Readonly<Record<string, string>>>> = {
    200: {
      'its last second': to(good),
      'another key': to(second),
      'its bucket': to(of({ ...fields, b: bucket })),
      'JSON in another spelling': to(of(`{ "e": ${end}, "m": "\\u0070ut",\n"k": "${object}" }`)),
      'a field of another release': to(of({ ...fields, x: [1] })),
      'what looks like a field within a text': to(of({ ...fields, x: '{"k":1,"k":2}', y: '"k":' })),
      'a field of the same name within one': to(of({ x: { k: 1 }, ...fields, y: { k: 2 } })),
      'unknown parameters': to(good, '&x=1'),
      'a path in another spelling': to(good).replace('cat.bin', '%63at%2Ebin'),
      'metadata to be removed': to(of({ ...fields, s: true })),
      'metadata to be kept': to(of({ ...fields, s: false })),
      'a part': to(of({ ...fields, ...part }), '&uploadId=2~abc&partNumber=7'),
    },
    401: {
      'no capability': to('').replace('?t=', ''),
      'an empty one': to(''),
      'a capability twice': to(good, `&t=${good}`),
      'no signature': to(payload),
      'an empty signature': to(`${payload}.`),
      'something behind it': to(`${good}.`),
      'a signature that is cut': to(good.slice(0, -1)),
      'a signature that is padded': to(`${good}=`),
      'a signature whose last two bits are not zero': to(withSpareBits(good)),
      'the digest in hexadecimal': to(
        `${payload}.${Buffer.from(signature, 'base64url').toString('hex')}`,
      ),
      'the signature of the JSON': to(
        `${payload}.${signer.sign(JSON.stringify(fields), 'base64url')}`,
      ),
      'the signature of another': to(
        `${payload}.${of({ ...fields, e: end + 1 }).split('.')[1] ?? ''}`,
      ),
      'a key that is not accepted': to(of(fields, 'x'.repeat(32))),
      'JSON that is padded': to(`${padded}.${signer.sign(padded, 'base64url')}`),
      'no JSON': to(of('k=v')),
      'a list': to(of([fields])),
      'a field twice': to(of(`{"k":"emojis/1","k":"${object}","m":"put","e":${end}}`)),
      'a field twice, once escaped': to(
        of(`{"k":"emojis/1","\\u006b":"${object}","m":"put","e":${end}}`),
      ),
      'a field twice that is not known': to(
        of(`{"x":1,"x":1,"k":"${object}","m":"put","e":${end}}`),
      ),
      'a field twice within one': to(
        of(`{"x":{"y":1,"y":2},"k":"${object}","m":"put","e":${end}}`),
      ),
      'a field twice around one': to(of(`{"m":"put","x":{},"k":"${object}","m":"put","e":${end}}`)),
      'no key': to(of({ m: 'put', e: end })),
      'no purpose': to(of({ k: object, e: end })),
      'another purpose': to(of({ ...fields, m: 'get' })),
      'no expiry': to(of({ k: object, m: 'put' })),
      'an expiry as a string': to(of({ ...fields, e: String(end) })),
      'an expiry with a fraction': to(of({ ...fields, e: end + 0.5 })),
      'an expiry that is not an exact number': to(of({ ...fields, e: 2 ** 60 })),
      'a size in text': to(of({ ...fields, mb: '1000' })),
      'an invalid type': to(of({ ...fields, ct: 'png' })),
      'a type with a line end': to(of({ ...fields, ct: 'image/png\r\nx: y' })),
      'an upload without a part': to(of({ ...fields, u: '2~abc' }), '&uploadId=2~abc'),
      'an upload without a name': to(of({ ...fields, u: '', p: 1 }), '&uploadId=&partNumber=1'),
      'part 10 001': to(of({ ...fields, u: 'x', p: 10_001 }), '&uploadId=x&partNumber=10001'),
      'part 0': to(of({ ...fields, u: '2~abc', p: 0 }), '&uploadId=2~abc&partNumber=0'),
      'a right to replace that is not a boolean': to(of({ ...fields, o: 1 })),
      'a removal of metadata that is not a boolean': to(of({ ...fields, s: 'true' })),
      'a removal of metadata that is null': to(of({ ...fields, s: null })),
      'a removal of metadata twice': to(
        of(`{"k":"${object}","m":"put","e":${end},"s":false,"s":true}`),
      ),
      'a removal of metadata twice, once escaped': to(
        of(`{"k":"${object}","m":"put","e":${end},"s":true,"\\u0073":true}`),
      ),
    },
    403: {
      'another object': to(good).replace('cat', 'dog'),
      'another bucket': to(of({ ...fields, b: 'renderings' })),
      'a key that is encoded': to(of({ ...fields, k: object.replaceAll('/', '%2F') })),
      'a part where the whole is permitted': to(good, '&uploadId=2~abc&partNumber=7'),
      'the whole where a part is permitted': to(of({ ...fields, ...part })),
      'another part': to(of({ ...fields, ...part }), '&uploadId=2~abc&partNumber=8'),
      'a part in another spelling': to(of({ ...fields, ...part }), '&uploadId=2~abc&partNumber=07'),
    },
    400: {
      'a key outside of every resource': at('backups/database'),
      'dots for a name': at('attachments/155369344/155369345/..'),
      'the a_ of an animation': at('avatars/155369344/a_0123456789abcdef0123456789abcdef'),
      'slashes that are encoded': to(good).replace(object, encodeURIComponent(object)),
    },
  };
  const paths = Object.entries(rows).flatMap(([status, row]) =>
    Object.entries(row).map(([why, path]) => ({
      why,
      at: end - 1,
      status: Number(status),
      path,
    })),
  );
  return [...paths, { why: 'its end', at: end, status: 401, path: to(good) }];
}

function sign(json: string, key = keys[0] ?? ''): string {
  return signCapabilityText(json, new SigningKeys([key]));
}

/** Spells the same bytes for a decoder that ignores the last two bits of 43 characters. */
function withSpareBits(text: string): string {
  return text.slice(0, -1) + String.fromCharCode(text.charCodeAt(text.length - 1) + 1);
}
