import { expect, test } from 'vitest';
import type { ClientResponse } from '../support/http/http-client.ts';
import { useStack } from './stack.ts';

const stack = await useStack();

type Line = Readonly<Record<'id' | 'request' | 'status', string> & { seconds: number }>;

/** The one line that the access log has of a response, by its id. */
async function findLine({ headers }: ClientResponse): Promise<Line> {
  expect(headers['x-request-id']).toEqual([expect.stringMatching(/^[\da-f]{32}$/)]);
  const [id] = headers['x-request-id'] ?? [];
  const find = (): readonly Line[] =>
    stack.nginx
      .accessLog()
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Line)
      .filter((line) => line.id === id);
  // It is written when the response is out.
  await expect.poll(find, { timeout: 5_000 }).toHaveLength(1);
  return find()[0] ?? expect.fail('the line has gone');
}

test('the log of nginx has a line for each request, with the request id that the client and Darkroom see', async () => {
  const target = '/emojis/5.webp?size=48';
  const headers = { 'User-Agent': 'a "quoted" agent' };
  const miss = await stack.ask(target, { headers });
  const line = await findLine(miss);
  expect(line).toMatchObject({
    client: '127.0.0.1',
    request: `GET ${target} HTTP/1.1`,
    status: '200',
    bytes: miss.body.length,
    cache: 'MISS',
    upstream: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
    upstreamStatus: '200',
    upstreamSeconds: expect.stringMatching(/^\d+\.\d{3}$/),
    userAgent: headers['User-Agent'],
  });
  expect(line.seconds).toBeGreaterThanOrEqual(0);
  expect(stack.relay.requestsOf('/emojis/5.webp')[0]?.headers['x-request-id']).toBe(line.id);

  const hit = await findLine(await stack.ask(target));
  expect(hit).toMatchObject({ status: '200', cache: 'HIT', upstream: '', upstreamStatus: '' });
  expect(hit.id).not.toBe(line.id);
});

test('the log of nginx has the request id of errors that Darkroom sends', async () => {
  const response = await stack.ask('/emojis/5.webp?size=47');
  expect(response.status).toBe(400);
  const { id } = await findLine(response);
  // One from each of nginx's two caches.
  const refused = stack.relay.requests.filter(({ status }) => status === 400);
  expect(refused.map(({ headers }) => headers['x-request-id'])).toEqual([id, id]);
});

const hm = 'ab'.repeat(32);
const photo = 'attachments/1/1/country-lane.jpg';

test.each([
  [`/${photo}?hm=${hm}`, `/${photo}?hm=[redacted]`],
  [`/${photo}?width=69&ex=1&hm=${hm}&is=2`, `/${photo}?hm=[redacted]&width=69`],
  [`/${photo}?width=69&h%6D=${hm}`, `/${photo}?hm=[redacted]&width=69`],
  [`/${photo}?hm=1&x=2&%68m=${hm}`, `/${photo}?hm=[redacted]`],
  [`/external/${hm}/v2/abc?width=9`, '/external/[redacted]/v2/abc?width=9'],
  [`/external/${hm}`, '/external/[redacted]'],
  [`/v1/relay/${photo}?t=${hm}&uploadId=1`, `/v1/relay/${photo}?[redacted]`],
  // What nginx refuses by itself is there, too.
  ...[`/${photo}?width=69&v=1`, '/avatars/1/%zz.webp', '/'].map((target) => [target, target]),
])('the logs of nginx contain no signature or capability: %s', async (target = '', logged) => {
  const response = await stack.ask(target);
  expect(await findLine(response)).toMatchObject({
    request: `GET ${logged} HTTP/1.1`,
    status: String(response.status),
  });
  expect(stack.nginx.accessLog() + stack.nginx.log()).not.toContain(hm);
});

test('the log of nginx has a line, without signature or capability, also while Darkroom is down', async () => {
  await stack.stopDarkroom();
  for (const target of [`/${photo}?width=70&hm=${hm}`, `/external/${hm}/v2/abc`]) {
    const response = await stack.ask(target);
    expect(JSON.parse(response.body.toString()).code).toBe('ORIGIN_ERROR');
    expect(response.status).toBe(502);
    expect(await findLine(response)).toMatchObject({
      status: '502',
      upstreamStatus: expect.stringMatching(/502$/), // twice, if a kept connection was tried first
    });
  }
  expect(stack.nginx.accessLog() + stack.nginx.log()).not.toContain(hm);
});
