/** Random signed requests, valid and invalid: attachments, external media and uploads. */

import fc from 'fast-check';
import { externalRow } from './contract-oracle.ts';
import {
  badParameter,
  equivalents,
  parametersOf,
  spellings,
  weighted,
} from './contract-requests.ts';
import { capabilityOf, KEYS, sign, signedText, type Terms } from './signed-oracle.ts';
import { drawnFor, fewValues, plainGet, type ValidRequest } from './surface-requests.ts';

const FOREIGN_KEY = 'a-key-that-this-service-does-not-have-at-all';
const now = Math.floor(Date.now() / 1000);
/** Far enough in the future that none expires during a run. */
const LATER = now + 86_400;
const key = fc.constantFrom<string>(...KEYS);

const hex = (seconds: number): string => seconds.toString(16).padStart(8, '0');
const signatureOf = (of: string, endsAt = LATER, use = '', secret: string = KEYS[0]): string => {
  const [ex, is] = [hex(endsAt), hex(now)];
  return `ex=${ex}&is=${is}&hm=${sign(signedText(ex, is, use, of), 'hex', secret)}`;
};

/** Signed queries of attachments, and errors in addition to those of docs/attachment-vectors.json. */
const signatures: Readonly<Record<string, (of: string) => string>> = {
  'a data export': (of) => `uc=dp&${signatureOf(of, 0, 'dp').replace('ex=00000000', 'ex=0')}`,
  'none of it': () => '',
  'an escaped digit': (of) => signatureOf(of).replace('is=6', 'is=%36'),
  'a line end': (of) => `${signatureOf(of)}%0A`,
  'a plus': (of) => signatureOf(of).replace('is=6', 'is=+'),
  'a name without a value': (of) => signatureOf(of).replace(/hm=.*/, 'hm'),
  'a foreign key': (of) => signatureOf(of, LATER, '', FOREIGN_KEY),
  'an expired URL': (of) => signatureOf(of, now),
};

/** Attachments with mostly valid signatures. */
export function signedAttachments(keys: readonly string[]): fc.Arbitrary<string> {
  const wrong = fc.constantFrom(...Object.values(signatures));
  const right = key.map((secret) => (of: string) => signatureOf(of, LATER, '', secret));
  return fc
    .tuple(fc.constantFrom(...keys), weighted([3, right], [1, wrong]))
    .chain(([of, signed]) => {
      const drawn = drawnFor(of).chain(equivalents);
      return drawn.chain((parts) => spellings(parts, signed(of).split('&')));
    });
}

const opaque = (url: string): string => `v2/${Buffer.from(url).toString('base64url')}`;
const segmented = (url: string): string => {
  const [, scheme = '', host = '', path = '', query] =
    /^(\w+):\/\/([^/?]*)\/?([^?]*)(\?.*)?$/.exec(url) ?? [];
  const first = query === undefined ? '' : `${encodeURIComponent(query)}/`;
  return `${first}${scheme}/${host}/${path}`;
};

/** URLs that are forbidden also with a valid signature (section 8). */
const forbidden = [
  ...['no url', '', 'file:///etc/passwd', 'ftp://127.0.0.1/a', 'http://localhost/', 'http://a/'],
  ...['http://10.0.0.1/', 'http://169.254.169.254/latest/', 'http://[::1]/', 'http://0x7f000001/'],
  ...['http://127.0.0.1:1/', 'http://127.0.0.2/', 'https://[::ffff:10.0.0.1]/', 'data:,x'],
  `http://10.0.0.1/${'x'.repeat(8_192)}`,
];

/** Paths of external media: URLs of the test site, and forbidden URLs. */
export function externalPaths(siteOrigin: string, urls: readonly string[]): fc.Arbitrary<string> {
  const { host } = new URL(siteOrigin);
  const url = weighted(
    [8, fc.constantFrom(...urls)],
    [1, fc.constantFrom('/nothing', '/photo.png#x').map((path) => siteOrigin + path)],
    [1, fc.constant(`http://user@${host}/photo.png`)],
    [1, fc.constantFrom(...forbidden)],
  );
  const raw = fc.constantFrom(
    ...[`http/${host}`, `http/${host}//x/../%2e%2e/./y//`, `http/${host}/%2F/%zz%E9%`],
    ...[`%3Fa%253Db/http/${host}/%252e`, `http/${host}/:x*;'[](){}|^`, `http/${host}/../photo.png`],
    ...'avatars/1/ab12.webp|v2/!||v2/|v2|http|%3F|/'.split('|'),
    `HTTP/${host}/photo.png`,
  );
  const written = fc
    .tuple(url, fc.constantFrom(opaque, segmented))
    .map(([text, write]) => write(text));
  const signed = fc.tuple(weighted([6, written], [1, raw]), key).map(([text, secret]) => {
    const target = text.replaceAll('#', '%23');
    return `/external/${sign(target, 'base64url', secret)}/${target}`;
  });
  const wrong = signed.chain((path) =>
    fc.constantFrom(
      ...['/external/', '/external/x', '/external//https/a.example/', '/external/x/y'],
      ...[path.slice(0, -1), `${path}/`, path.replace('/v2/', '%2Fv2/')],
      path.replace(/^(\/external\/[^/]+)/, '$1='),
      path.replace(/^\/external\/[^/]+\/(.*)$/, (_, target: string) => {
        return `/external/${sign(target, 'base64url', FOREIGN_KEY)}/${target}`;
      }),
    ),
  );
  const pairs = parametersOf(externalRow, fewValues).map((parameters) =>
    Object.entries(parameters).map(([name, value]) => `${name}=${value}`),
  );
  const badPairs = fc
    .constantFrom('width', 'format', 'quality')
    .chain((name) =>
      badParameter(name).map((all) => all.map((v) => `${name}=${encodeURIComponent(v)}`)),
    );
  const query = weighted([3, fc.constant<string[]>([])], [4, pairs], [1, badPairs]);
  return fc
    .tuple(fc.constantFrom('', '', 'http://cdn.example'), weighted([5, signed], [1, wrong]), query)
    .map(([address, path, all]) => {
      return `${address}${path}${all.length === 0 ? '' : `?${[...all, 'v=1'].join('&')}`}`;
    });
}

/** Keys of uploads, few enough that they collide. */
export const uploadKeys = Array.from({ length: 40 }, (_, index) => [
  `emojis/77${index}`,
  `attachments/7/${index}/Größe ?&#%.bin`,
]).flat();

interface Draft extends Pick<ValidRequest, 'target' | 'refused'> {
  readonly text: string;
}

const writeKey = (of: string): string => of.split('/').map(encodeURIComponent).join('/');
const draft = (of: string, t: string, text: string, refused?: Draft['refused']): Draft => ({
  target: `/v1/relay/${of}?t=${t}`,
  text,
  ...(refused && { refused }),
});

const terms = (of: string, more: object = {}): string =>
  JSON.stringify({ k: of, m: 'put', e: LATER, ...more });

/** Uploads that are rejected regardless of stored objects. docs/upload-vectors.json has malformed capabilities. */
function wrongUploads(maxBytes: number): readonly Draft[] {
  const of = 'emojis/778';
  const json = terms(of);
  const t = capabilityOf(json);
  const capabilities = [
    ...['', `${t}=`, `.${t}`, `${t}&t=${t}`, capabilityOf(json, FOREIGN_KEY)],
    ...['{', 'null', `\ufeff${json}`, `${json}{}`].map((text) => capabilityOf(text)),
    capabilityOf(terms(of, { ct: 'x'.repeat(12_400) })),
    ...[{ mb: -1 }, { b: null }, { k: 1 }, { p: 1 }, { u: 'x', p: '1' }].map((more) =>
      capabilityOf(terms(of, more)),
    ),
  ];
  const stray = (path: string, k = path): Draft =>
    draft(path, capabilityOf(terms(k)), 'x', [400, 'INVALID_FORM_BODY']);
  const strays = `
    backups/database emojis/x emojis/01 avatars/1/a.b attachments/1/2 avatars/3 external/ab12
    avatars/1/a_ab12 avatars/1/ab12/ attachments/1/2/.. ../../etc/passwd attachments/1/2/%ff`;
  return [
    ...capabilities.map((each) => draft(of, each, 'x', [401, 'UNAUTHORIZED'])),
    ...[t, capabilityOf(terms(of, { u: 'x', p: 1 }))].map((each) =>
      draft(of, `${each}&uploadId=x&partNumber=1`, 'x', [403, 'ACCESS_DENIED']),
    ),
    draft(of, t, 'x'.repeat(maxBytes + 1)),
    ...strays
      .trim()
      .split(/\s+/)
      .map((each) => stray(each)),
    ...['a\\b', 'a\0b', 'a'.repeat(256)].map((name) =>
      stray(`attachments/1/2/${encodeURIComponent(name)}`, `attachments/1/2/${name}`),
    ),
    stray('attachments/1/2/%2e%2e', 'attachments/1/2/..'),
    stray('emojis%2F778', of),
    stray('attachments/1/2/a%2Fb', 'attachments/1/2/a/b'),
    stray('attachments/1/2/%zz', of),
  ];
}

const uploadOf = (
  { text, ...draft }: Draft,
  maxBytes: number,
  type = 'image/png',
  kind: 'length' | 'chunks' | 'none' = 'length',
  method = 'PUT',
  encoding?: string,
): ValidRequest => ({
  ...draft,
  // Only uploads may have such a long head.
  method: draft.target.length > 9_000 ? 'PUT' : method,
  kind: 'sound',
  version: '1.1',
  headers: [
    ['Host', 'cdn.example'] as const,
    ['Content-Type', type] as const,
    ...(encoding === undefined ? [] : [['Content-Encoding', encoding] as const]),
  ],
  // The head declares an excessive size.
  body: { kind: text.length > maxBytes ? 'length' : kind, text },
});

/** Uploads of pictures and other files, mostly permitted (section 10). */
export function uploads(pictures: readonly Buffer[], maxBytes: number): fc.Arbitrary<ValidRequest> {
  const bytes = fc.constantFrom(
    ...pictures.map((picture) => picture.toString('latin1')),
    'two households',
  );
  const permissions: readonly Partial<Terms>[] = [
    ...[{}, {}, { o: true }, { o: true }, { mb: 9, ct: 'text/plain' }, { mb: maxBytes }],
    ...[{ ct: 'text/html' }, { ct: 'image/png' }, { ct: 'IMAGE/AVIF; x=y' }, { b: 'a bucket' }],
    ...[{ e: now - 1 }, { k: 'emojis/1' }, { u: '2~x', p: 1 }],
  ];
  const permitted = fc
    .tuple(fc.constantFrom(...uploadKeys), fc.constantFrom(...permissions), bytes, key)
    .map(([of, more, text, secret]) => {
      return draft(writeKey(of), capabilityOf(terms(of, more), secret), text);
    });
  const wrong = fc.constantFrom(...wrongUploads(maxBytes));
  const types = fc.constantFrom('', 'text/html', 'image/png', 'image/svg+xml', 'image/pngx');
  const kinds = weighted<'length' | 'chunks' | 'none'>(
    [12, fc.constantFrom('length', 'chunks')],
    [1, fc.constant('none')],
  );
  const encodings = weighted<string | undefined>(
    [12, fc.constant(undefined)],
    [1, fc.constantFrom('identity', 'gzip', 'x')],
  );
  const methods = weighted([6, fc.constant('PUT')], [2, fc.constantFrom('OPTIONS', 'GET')]);
  return fc
    .tuple(weighted([2, permitted], [1, wrong]), types, kinds, methods, encodings)
    .map(([draft, ...rest]) => uploadOf(draft, maxBytes, ...rest));
}

/** One request for each error of a signed URL. */
export function signedExamples(key: string, maxBytes: number): readonly ValidRequest[] {
  const urls = Object.values(signatures).map((write) => `/${key}?${write(key)}`);
  const [of = ''] = uploadKeys;
  const permitted = draft(writeKey(of), capabilityOf(terms(of)), 'two households');
  const put = (...rest: readonly [kind?: 'length' | 'none', method?: string, encoding?: string]) =>
    uploadOf(permitted, maxBytes, 'text/plain', ...rest);
  return [
    ...urls.map((url) => plainGet(url)),
    ...[put('none'), put('length', 'PUT', 'gzip'), put(), put()],
    ...wrongUploads(maxBytes).map((each) => uploadOf(each, maxBytes)),
  ];
}
