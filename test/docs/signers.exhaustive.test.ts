import { readRelayKey, verifyCapability } from '../../src/contract/signing/relay-capability.ts';
import { SigningKeys } from '../../src/contract/signing/signing-keys.ts';
import { attachmentVectors } from '../../tools/documents/attachment-vectors.ts';
import { externalVectors } from '../../tools/documents/external-vectors.ts';
import { uploadVectors } from '../../tools/documents/upload-vectors.ts';
import { testSigners } from './signers.ts';

type Sign<Arguments extends readonly unknown[]> = (...values: Arguments) => string;

const urls = [...externalVectors.accepted, ...externalVectors.forbidden];

testSigners({
  kind: 'external',
  calls: urls.map((vector) => [
    vector.url,
    ('key' in vector ? vector.key : externalVectors.keys[0]) ?? '',
  ]),
  expected: urls.map((vector) => ('opaque' in vector ? vector.opaque : vector.path)),
  call: {
    ts: ({ signExternal }, [url = '', key = '']) =>
      (signExternal as Sign<[string, string]>)(url, key),
    python: 'sign_external(*row)',
    go: 'SignExternal(row[0], row[1])',
    php: 'sign_external($row[0], $row[1])',
  },
});

const { signed } = attachmentVectors;

testSigners({
  kind: 'attachments',
  calls: signed.map(({ attachment, key, now }) => [attachment, key, String(now)]),
  expected: signed.map(({ url }) => url),
  // A name may be encoded in more than one way.
  comparable: (url) => {
    const [path = '', query = ''] = url.split(/\?(.*)/s);
    return `${path.split('/').map(decodeURIComponent).join('/')} ${query}`;
  },
  call: {
    ts: ({ signAttachment }, [attachment = '', key = '', now = '']) =>
      (signAttachment as Sign<[string, string, number]>)(attachment, key, Number(now)),
    python: 'sign_attachment(row[0], row[1], int(row[2]))',
    go: 'SignAttachment(row[0], row[1], number(row[2]))',
    php: 'sign_attachment($row[0], $row[1], (int) $row[2])',
  },
});

testSigners({
  kind: 'uploads',
  calls: uploadVectors.signed.map(({ fields, key }) => [JSON.stringify(fields), key]),
  expected: uploadVectors.signed.map(({ path }) => path),
  // JSON and a name may be spelled in more than one way: what they permit is compared, and which key has signed it.
  comparable: (path) => {
    const [rawPath = '', capability = ''] = path.split('?t=');
    const permitted = uploadVectors.keys.map((key) =>
      verifyCapability(capability, new SigningKeys([key]), 0),
    );
    return JSON.stringify([readRelayKey(rawPath), ...permitted]);
  },
  call: {
    ts: ({ signUpload }, [fields = '', key = '']) =>
      (signUpload as Sign<[Record<string, unknown>, string]>)(JSON.parse(fields), key),
    python: 'sign_upload(json.loads(row[0]), row[1])',
    go: 'must(SignUpload(object(row[0]), row[1]))',
    php: 'sign_upload(json_decode($row[0], true), $row[1])',
  },
});
