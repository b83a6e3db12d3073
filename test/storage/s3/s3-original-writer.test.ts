import { expect, test } from 'vitest';
import { S3OriginalWriter } from '../../../src/storage/s3/s3-original-writer.ts';
import { LOCAL_CREDENTIALS } from '../../support/s3/local-s3.ts';
import { s3Options } from '../../support/s3/s3-bucket.ts';
import { useScriptedS3 } from '../../support/s3/scripted-s3.ts';

Object.assign(process.env, LOCAL_CREDENTIALS);

test('a server that tells no tag, and is silent when it is asked for it, holds no upload up', async () => {
  const stopping = new AbortController();
  const { endpoint, requests } = await useScriptedS3(({ method }, response) => {
    if (method === 'PUT') response.end();
    else stopping.abort(); // a HEAD: the client leaves, and no response comes
  });
  const writer = new S3OriginalWriter(s3Options({ endpoint, bucket: 'originals' }));
  const chunks = (async function* () {
    yield Buffer.from('x');
  })();
  expect(await writer.write('a', chunks, { signal: stopping.signal, sizeBytes: 1 })).toBe('');
  expect(requests.map(({ method }) => method)).toEqual(['PUT', 'HEAD']);
});
