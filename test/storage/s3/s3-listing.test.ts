import { describe, expect, test } from 'vitest';
import { S3Listing } from '../../../src/storage/s3/s3-listing.ts';
import { LOCAL_CREDENTIALS } from '../../support/s3/local-s3.ts';
import { s3Options } from '../../support/s3/s3-bucket.ts';
import {
  respondWithError,
  respondWithPage,
  type ScriptedAnswer,
  type ScriptedS3,
  useScriptedS3,
} from '../../support/s3/scripted-s3.ts';

Object.assign(process.env, LOCAL_CREDENTIALS);

const signal = new AbortController().signal;

describe('the listing of a bucket', () => {
  let server: ScriptedS3 | undefined;

  const listWith = async (respond: ScriptedAnswer, most = Infinity): Promise<string[]> => {
    server = await useScriptedS3(respond);
    const bucket = { endpoint: server.endpoint, bucket: 'originals' };
    const keys: string[] = [];
    const listing = new S3Listing(s3Options(bucket, { prefix: 'media/' }));
    await listing.list('emojis/', ({ key }) => keys.push(key) < most, signal);
    return keys;
  };
  const twoPages: ScriptedAnswer = ({ url }, response) => {
    if (url.searchParams.has('continuation-token')) respondWithPage(response, ['media/emojis/3']);
    else respondWithPage(response, ['media/emojis/1', 'media/emojis/2'], 'a/+ b');
  };

  test('goes on from page to page', async () => {
    expect(await listWith(twoPages)).toEqual(['emojis/1', 'emojis/2', 'emojis/3']);
    const queries = server?.requests.map(({ url }) => url.searchParams) ?? [];
    expect(queries.map((query) => query.get('prefix'))).toEqual(['media/emojis/', 'media/emojis/']);
    expect(queries.map((query) => query.get('continuation-token'))).toEqual([null, 'a/+ b']);
  });

  test('asks for no page that is not wanted', async () => {
    expect(await listWith(twoPages, 2)).toEqual(['emojis/1', 'emojis/2']);
    expect(server?.requests).toHaveLength(1);
  });

  test('does not show keys that no request could ask for', async () => {
    const keys = ['media/emojis/', 'media/emojis/1', 'media/emojis/../2', 'media/emojis//3'];
    expect(await listWith((_, response) => respondWithPage(response, keys))).toEqual(['emojis/1']);
  });

  const failing: readonly (readonly [string, ScriptedAnswer, string])[] = [
    ['refuses', (_, it) => respondWithError(it, 403, 'AccessDenied'), 'AccessDenied'],
    [
      'has more, and names no way to it',
      (_, it) => respondWithPage(it, ['media/emojis/1'], ''),
      'no way to the rest',
    ],
    [
      'knows no prefixes',
      (_, it) => respondWithPage(it, ['secrets/1']),
      'lists secrets/1 below media/emojis/',
    ],
  ];
  test.each(failing)('fails where the server %s', async (_, respond, reason) => {
    await expect(listWith(respond)).rejects.toMatchObject({
      code: 'ORIGIN_ERROR',
      cause: { message: expect.stringContaining(reason) },
    });
  });
});
