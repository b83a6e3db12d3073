import { afterEach, describe, expect, test } from 'vitest';
import { S3Listing } from '../../../src/storage/s3/s3-listing.ts';
import { LOCAL_CREDENTIALS } from '../../support/s3/local-s3.ts';
import { s3Options } from '../../support/s3/s3-bucket.ts';
import {
  type ScriptedAnswer,
  type ScriptedS3,
  startScriptedS3,
} from '../../support/s3/scripted-s3.ts';

Object.assign(process.env, LOCAL_CREDENTIALS);

const signal = new AbortController().signal;

/** A page of a list, as S3 writes it; `next` where another one follows. */
function pageOf(keys: readonly string[], next?: string): string {
  const contents = keys.map((key) => `<Contents><Key>${key}</Key><Size>5</Size></Contents>`);
  const more = next && `<NextContinuationToken>${next}</NextContinuationToken>`;
  return `<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>${next !== undefined}</IsTruncated>${more ?? ''}${contents.join('')}</ListBucketResult>`;
}

describe('the listing of a bucket', () => {
  let server: ScriptedS3 | undefined;
  afterEach(() => server?.close());

  const listWith = async (answer: ScriptedAnswer, most = Infinity): Promise<string[]> => {
    server = await startScriptedS3(answer);
    const bucket = { endpoint: server.endpoint, bucket: 'originals' };
    const nothing = async (): Promise<void> => undefined;
    const options = s3Options({ ...bucket, create: nothing, put: nothing, remove: nothing });
    const keys: string[] = [];
    const listing = new S3Listing({ ...options, prefix: 'media/' });
    await listing.list('emojis/', ({ key }) => keys.push(key) < most, signal);
    return keys;
  };
  const twoPages: ScriptedAnswer = ({ url }, response) => {
    const isSecond = url.searchParams.has('continuation-token');
    response.end(
      isSecond ? pageOf(['media/emojis/3']) : pageOf(['media/emojis/1', 'media/emojis/2'], 'a/+ b'),
    );
  };

  test('goes on from page to page', async () => {
    expect(await listWith(twoPages)).toEqual(['emojis/1', 'emojis/2', 'emojis/3']);
    const queries = server?.requests.map(({ url }) => url.searchParams) ?? [];
    expect(queries.map((query) => query.get('prefix'))).toEqual(['media/emojis/', 'media/emojis/']);
    expect(queries.map((query) => query.get('continuation-token'))).toEqual([null, 'a/+ b']);
  });

  test('asks for no page that nobody wants', async () => {
    expect(await listWith(twoPages, 2)).toEqual(['emojis/1', 'emojis/2']);
    expect(server?.requests).toHaveLength(1);
  });

  test('does not show keys that no request could ask for', async () => {
    const keys = ['media/emojis/', 'media/emojis/1', 'media/emojis/../2', 'media/emojis//3'];
    expect(await listWith((_, response) => response.end(pageOf(keys)))).toEqual(['emojis/1']);
  });

  test.each([
    ['refuses', 403, '<Error><Code>AccessDenied</Code></Error>', 'AccessDenied'],
    ['has more, and tells no way to it', 200, pageOf(['media/emojis/1'], ''), 'no way to the rest'],
    ['knows no prefixes', 200, pageOf(['secrets/1']), 'lists secrets/1 below media/emojis/'],
  ])('fails where the server %s', async (_, status, body, reason) => {
    const answer: ScriptedAnswer = (_request, response) => {
      response.writeHead(status).end(body);
    };
    await expect(listWith(answer)).rejects.toMatchObject({
      code: 'ORIGIN_ERROR',
      cause: { message: expect.stringContaining(reason) },
    });
  });
});
