import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  createUploadCapability,
  signAttachmentUrl,
  signExternalUrl,
  type Upload,
  verifyAttachmentUrl,
  verifyExternalUrl,
  verifyUploadCapability,
} from '../../src/client/signing.ts';
import { checkSignature } from '../../src/contract/signing/attachment-signature.ts';
import {
  formatExternalPath,
  verifyExternalPath,
} from '../../src/contract/signing/external-path.ts';
import { checkCapability, readRelayKey } from '../../src/contract/signing/relay-capability.ts';
import { SigningKeys } from '../../src/contract/signing/signing-keys.ts';
import { attachmentVectors } from '../../tools/documents/attachment-vectors.ts';
import { externalVectors } from '../../tools/documents/external-vectors.ts';
import { uploadVectors } from '../../tools/documents/upload-vectors.ts';

const cdnUrl = 'https://cdn.example.com/media';
const signingKeys = 'an-example-key-of-thirty-two-bytes-or-more';
const serverKeys = new SigningKeys([signingKeys]);
const at = (seconds: number): Date => new Date(seconds * 1000);

/** Valid file names of attachments. */
const filename = fc
  .string({ unit: 'binary', minLength: 1, maxLength: 60 })
  .filter((text) => !/[/\\\p{Cc}\p{Cs}]|^\.{1,2}$/u.test(text));
const id = fc.bigInt({ min: 0n, max: 2n ** 63n });

describe('signAttachmentUrl', () => {
  test.each(attachmentVectors.signed)(
    'returns the URL of the vector for $attachment at $now',
    async (row) => {
      const [, channelId = '', attachmentId = '', name = ''] = row.attachment.split('/');
      const attachment = { channelId, attachmentId, filename: name };
      const options = { ...attachment, signingKeys: [row.key], now: at(row.now) };
      expect(await signAttachmentUrl(options)).toBe(row.url);
      expect(await signAttachmentUrl({ ...options, cdnUrl })).toBe(cdnUrl + row.url);
    },
  );

  test('returns URLs that the service accepts', async () => {
    await fc.assert(
      fc.asyncProperty(id, id, filename, async (channelId, attachmentId, name) => {
        const attachment = { channelId, attachmentId, filename: name };
        const url = await signAttachmentUrl({ ...attachment, signingKeys });
        const [path = '', query = ''] = url.split('?');
        const key = path.slice(1).split('/').map(decodeURIComponent).join('/');
        const signing = { keys: serverKeys, domain: 'attachment-url-v1' };
        expect(checkSignature(query, key, signing, Date.now()).verdict).toBe('valid');
        const { verdict } = await verifyAttachmentUrl({ url, signingKeys });
        expect(verdict).toBe('valid');
      }),
    );
  });

  test('throws an error that names all faults', async () => {
    const attachment = { channelId: 'x', attachmentId: '-1', filename: 'a/b' };
    await expect(signAttachmentUrl({ ...attachment, signingKeys })).rejects.toThrow(
      /^Invalid attachment: channelId is "x".*attachmentId is "-1".*filename is "a\/b"/,
    );
  });
});

test.each(attachmentVectors.judged)('verifyAttachmentUrl: $why is $verdict', async (row) => {
  const options = { signingKeys: attachmentVectors.keys, now: at(row.at) };
  const { verdict, expiresAt } = await verifyAttachmentUrl({ url: row.url, ...options });
  expect(verdict).toBe(row.verdict);
  const isDated = !['missing', 'malformed'].includes(verdict) && !row.url.includes('uc=dp');
  expect(expiresAt !== undefined).toBe(isDated);
  const moved = await verifyAttachmentUrl({ url: cdnUrl + row.url, cdnUrl, ...options });
  expect(moved.verdict).toBe(row.verdict);
});

test('verifyAttachmentUrl accepts the domain of another platform', async () => {
  const vector = attachmentVectors.judged.find(({ why }) => why === 'another domain');
  const { url, at: seconds } = vector ?? expect.fail();
  const options = { signingKeys: attachmentVectors.keys, domain: 'other', now: at(seconds) };
  expect((await verifyAttachmentUrl({ url, ...options })).verdict).toBe('valid');
});

describe('external media', () => {
  test.each(externalVectors.accepted)('are signed and verified: $url', async (row) => {
    expect(await signExternalUrl({ url: row.url, signingKeys: [row.key] })).toBe(row.opaque);
    for (const [path, url] of [
      [row.opaque, row.url],
      [row.segmented, row.canonical],
    ] as const) {
      for (const signed of [path, `https://cdn.example.com${path}?width=80`]) {
        const verified = await verifyExternalUrl({
          url: signed,
          signingKeys: externalVectors.keys,
        });
        expect(verified).toEqual({ verdict: 'valid', url });
      }
    }
  });

  test.each(externalVectors.unauthorized)('are rejected: $why', async ({ path }) => {
    const { verdict } = await verifyExternalUrl({ url: path, signingKeys: externalVectors.keys });
    expect(verdict).toMatch(/^(?:mismatch|malformed)$/);
  });

  test('are signed and verified as by the service', async () => {
    const text = fc.oneof(fc.webUrl({ withQueryParameters: true, withFragments: true }));
    await fc.assert(
      fc.asyncProperty(text, async (url) => {
        const path = await signExternalUrl({ url, signingKeys });
        expect(path).toBe(formatExternalPath(url, serverKeys));
        const verified = await verifyExternalUrl({ url: path, signingKeys });
        expect(verified).toEqual({ verdict: 'valid', url: verifyExternalPath(path, serverKeys) });
      }),
    );
    const target = fc.oneof(
      fc.string({ unit: fc.constantFrom(...'/%3Fhttps:v2.a=é') }),
      fc.string().map((path) => `https/a.example/${encodeURI(path)}`),
      fc.string().map((query) => `%3F${encodeURIComponent(query)}/https/a.example/`),
    );
    await fc.assert(
      fc.asyncProperty(target, async (each) => {
        const bytes = Buffer.from(Buffer.from(each).toString('latin1'), 'latin1');
        const signature = serverKeys.sign(bytes, 'base64url');
        const path = `/external/${signature}/${bytes.toString('latin1')}`;
        const read = verifyExternalPath(path, serverKeys);
        if (/[?#]/.test(path) || each === '') return;
        const verified = await verifyExternalUrl({ url: path, signingKeys });
        expect(verified).toEqual({ verdict: 'valid', url: read });
      }),
    );
  });

  test.each([
    ['cat.png', 'url is "cat.png"; expected a complete URL.'],
    ['ftp://a.example/', 'expected http or https.'],
    ['https://user:secret@a.example/', 'expected no user name or password.'],
    ['https://a.example/\ncat.png', 'expected no control character.'],
    [`https://a.example/${'x'.repeat(8_192)}`, 'expected at most 8192 bytes.'],
  ])('are not signed for %.40j', async (url, message) => {
    await expect(signExternalUrl({ url, signingKeys })).rejects.toThrow(message);
  });
});

/** Converts the fields of a vector to the library's options. */
function uploadOf(fields: (typeof uploadVectors.signed)[number]['fields']): Upload {
  const { k, e, ...others } = fields;
  const { b, ct, mb, o, s }: { b?: string; ct?: string; mb?: number; o?: boolean; s?: boolean } =
    others;
  return {
    key: k,
    expiresAt: at(e),
    bucket: b,
    contentType: ct,
    maxBytes: mb,
    replace: o,
    stripMetadata: s,
  };
}

describe('createUploadCapability', () => {
  test.each(uploadVectors.signed)('permits the same upload as the vector: $fields', async (row) => {
    const made = await createUploadCapability({ ...uploadOf(row.fields), signingKeys: [row.key] });
    const [path = '', capability = ''] = made.url.split('?t=');
    expect(capability).toBe(made.capability);
    expect(readRelayKey(path)).toBe(row.fields.k);
    const check = (text: string) => checkCapability(text, new SigningKeys([row.key]), 0);
    expect(check(capability)).toEqual(check(row.path.split('?t=')[1] ?? ''));
    expect(check(capability).verdict).toBe('valid');
  });

  test('has the query parameters of a part, and only the fields that were set', async () => {
    const part = { uploadId: 'a/b+c', partNumber: 3 };
    const made = await createUploadCapability({
      key: 'attachments/1/2/a b.bin',
      expiresAt: at(1),
      part,
      signingKeys,
      cdnUrl,
    });
    expect(made.url).toBe(
      `${cdnUrl}/v1/relay/attachments/1/2/a%20b.bin?t=${made.capability}&uploadId=a%2Fb%2Bc&partNumber=3`,
    );
    const json = Buffer.from(made.capability.split('.')[0] ?? '', 'base64url').toString();
    expect(JSON.parse(json)).toEqual({
      ...{ m: 'put', k: 'attachments/1/2/a b.bin', e: 1 },
      ...{ u: 'a/b+c', p: 3 },
    });
  });

  const upload = { key: 'attachments/1/2/a.png', expiresAt: at(1) };
  test.each<[change: Partial<Upload>, message: string]>([
    [{ key: '' }, 'key is ""; expected segments that are neither empty nor . or ...'],
    [{ key: '/a' }, 'key is "/a"; expected segments'],
    [{ key: 'avatars/1/a_ab' }, 'expected the key without the a_ of its hash.'],
    [{ key: `attachments/1/2/${'é'.repeat(600)}` }, 'expected at most 1024 bytes of UTF-8.'],
    [{ expiresAt: new Date(1_500) }, 'expected a date of whole seconds.'],
    [{ expiresAt: new Date(Number.NaN) }, 'expected a date of whole seconds.'],
    [{ contentType: 'png' }, 'contentType is "png"; expected a media type.'],
    [{ maxBytes: -1 }, 'maxBytes is -1; expected a number of bytes.'],
    [{ part: { uploadId: 'u', partNumber: 10_001 } }, 'expected an integer from 1 to 10000.'],
    [
      { part: { uploadId: '', partNumber: 1 } },
      'part.uploadId is ""; expected the id of an upload.',
    ],
    [{ bucket: 'b'.repeat(13_000) }, 'the capability has more than 16384 characters.'],
  ])('throws an error that names the fault, case %#', async (change, message) => {
    const made = createUploadCapability({ ...upload, ...change, signingKeys });
    await expect(made).rejects.toThrow(RangeError);
    await expect(made).rejects.toThrow(message);
  });
});

test('verifyUploadCapability returns the verdicts of the service', async () => {
  const keys = new SigningKeys(uploadVectors.keys);
  for (const { why, at: seconds, path } of uploadVectors.judged) {
    const capability = /[?&]t=([^&]*)/.exec(path)?.[1] ?? '';
    const expected = checkCapability(capability, keys, seconds);
    const verified = await verifyUploadCapability({
      capability,
      signingKeys: uploadVectors.keys,
      now: at(seconds),
    });
    expect(verified.verdict, why).toBe(expected.verdict);
    if (verified.verdict !== 'valid' || expected.verdict !== 'valid') continue;
    const { expiresAtSeconds, replaces, stripsMetadata, ...others } = expected.capability;
    expect(verified.upload, why).toEqual({
      ...others,
      expiresAt: at(expiresAtSeconds),
      replace: replaces,
      stripMetadata: stripsMetadata,
    });
  }
});

describe('signing keys', () => {
  const bytes = Buffer.from('a key of bytes that are no UTF-8: \xff\xfe', 'latin1');
  const base64 = `base64:${bytes.toString('base64')}`;
  const url = 'https://a.example/cat.png';

  test.each([
    signingKeys,
    base64,
    base64.replace(/=+$/, ''),
    'ein Schlüssel, der 32 Bytes hat oder mehr',
  ])('are parsed as by the service: %j', async (key) => {
    const path = formatExternalPath(url, new SigningKeys([key]));
    expect(await signExternalUrl({ url, signingKeys: [key] })).toBe(path);
  });

  test('can be passed as in the setting: the first key signs, all keys verify', async () => {
    const setting = ` ${base64} , ${signingKeys}`;
    const path = formatExternalPath(url, new SigningKeys([base64]));
    expect(await signExternalUrl({ url, signingKeys: setting })).toBe(path);
    for (const key of [base64, signingKeys]) {
      const signed = formatExternalPath(url, new SigningKeys([key]));
      const { verdict } = await verifyExternalUrl({ url: signed, signingKeys: setting });
      expect(verdict).toBe('valid');
    }
  });

  test.each<[keys: string | string[], message: string]>([
    [[], 'signingKeys: expected at least one key.'],
    ['', 'signingKeys: key 1 of 1 has 0 bytes; expected at least 32.'],
    [`${signingKeys},short`, 'signingKeys: key 2 of 2 has 5 bytes; expected at least 32.'],
    ['base64:%%%', 'signingKeys: key 1 of 1 is not valid base64.'],
    [`${base64}=`, 'signingKeys: key 1 of 1 is not valid base64.'],
    [`base64:${'A'.repeat(41)}`, 'signingKeys: key 1 of 1 is not valid base64.'],
    [`base64:${Buffer.alloc(31).toString('base64')}`, 'has 31 bytes; expected at least 32.'],
  ])('throw an error without the key if they are invalid: %j', async (keys, message) => {
    const signed = signExternalUrl({ url, signingKeys: keys });
    await expect(signed).rejects.toThrow(RangeError);
    await expect(signed).rejects.toThrow(message);
    const service = () => new SigningKeys(typeof keys === 'string' ? keys.split(',') : keys);
    expect(service).toThrow(RangeError);
  });
});
