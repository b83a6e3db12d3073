import { stripVTControlCharacters } from 'node:util';
import { afterEach, describe, expect, test } from 'vitest';
import { createLog } from '../../src/telemetry/log.ts';
import { createRedaction } from '../../src/telemetry/redaction.ts';
import { type ServiceProcess, startService } from '../support/processes/service-process.ts';

const TOKEN = 'token-of-the-administrator';
const AWS_SECRET = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY';

describe('the log of the process', () => {
  let service: ServiceProcess | undefined;
  afterEach(() => service?.stop('SIGKILL'));

  const lines = (): Record<string, unknown>[] =>
    (service?.output() ?? '')
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  const requests = (): Record<string, unknown>[] => lines().filter(({ msg }) => msg === 'request');

  test('has a line of JSON for each request but hits, and no secret in it', async () => {
    service = await startService({
      ADMIN_PORT: '0',
      ADMIN_TOKEN: TOKEN,
      AWS_SECRET_ACCESS_KEY: AWS_SECRET,
    });
    const { origin } = service;
    const asset = '/icons/1/ab12.webp?size=64';
    for (let time = 0; time < 5; time += 1) await (await fetch(origin + asset)).arrayBuffer();
    const signed = '/x?X-Amz-Credential=AKIA123&X-Amz-Signature=5f2d9a&size=1';
    await fetch(origin + signed, { headers: { authorization: `Bearer ${TOKEN}` } });
    await fetch(`${origin}/x/${TOKEN}/${encodeURIComponent(AWS_SECRET)}`);
    await fetch(`${origin}/y?${AWS_SECRET}`);
    await expect.poll(() => requests().length).toBe(4);
    expect(requests()[0]).toMatchObject({
      level: 30,
      resource: 'guild icon',
      asset: 'icons/1/ab12?width=64&height=&format=webp&quality=high&animated=false',
      status: 200,
      cache: 'miss',
      stagesMs: { render: expect.any(Number) },
    });
    expect(requests()[1]?.asset).toBe(
      '/x?X-Amz-Credential=[redacted]&X-Amz-Signature=[redacted]&size=1',
    );
    expect(requests()[2]?.asset).toMatch(/^\/x\/\[redacted\]\//);
    expect(requests()[3]?.asset).toBe('/y?[redacted]');
    expect(service.output()).not.toContain(TOKEN);
    expect(service.output()).not.toContain(AWS_SECRET);
    expect(await service.stop()).toBe(0);
    expect(lines().slice(-2)).toMatchObject([{ msg: 'stopping' }, { msg: 'stopped', status: 0 }]);
  });

  test('has the hits at "debug", and none of them at "warn"', async () => {
    const asset = '/icons/1/ab12.webp?size=64';
    const askOften = async (): Promise<void> => {
      for (let time = 0; time < 5; time += 1) {
        await (await fetch((service?.origin ?? '') + asset)).arrayBuffer();
      }
    };
    service = await startService({ LOG_LEVEL: 'debug' });
    await askOften();
    await expect.poll(() => requests().map(({ level }) => level)).toEqual([30, 20, 20, 20, 20]);
    await service.stop();
  });
});

describe('redaction', () => {
  const redact = createRedaction([TOKEN, AWS_SECRET, undefined, 'short', 'with "quotes"']);

  test.each([
    [`a ${TOKEN} b ${TOKEN}`, 'a [redacted] b [redacted]'],
    [JSON.stringify({ a: 'with "quotes"' }), '{"a":"[redacted]"}'],
    ['a short word stays', 'a short word stays'],
    [
      'https://s3/k?X-Amz-Signature=ab12&x-id=GetObject',
      'https://s3/k?X-Amz-Signature=[redacted]&x-id=GetObject',
    ],
    ['?x-amz-security-token=a%2Fb"}', '?x-amz-security-token=[redacted]"}'],
    [
      '?X-Goog-Credential=a&X-Goog-Signature=b',
      '?X-Goog-Credential=[redacted]&X-Goog-Signature=[redacted]',
    ],
    ['?ex=1&is=2&hm=abc', '?ex=1&is=2&hm=[redacted]'],
    [
      '?Policy=a&Signature=b&Key-Pair-Id=c',
      '?Policy=[redacted]&Signature=[redacted]&Key-Pair-Id=[redacted]',
    ],
    [
      'AWS4-HMAC-SHA256 Credential=AK/1/s3, SignedHeaders=host, Signature=ff',
      'AWS4-HMAC-SHA256 Credential=[redacted], SignedHeaders=host, Signature=[redacted]',
    ],
    ['{"authorization":"Bearer abc.def","b":1}', '{"authorization":"[redacted]","b":1}'],
    ['Authorization: Basic dXNlcjpwYXNz', 'Authorization: [redacted]'],
    ['the answer to Bearer abcdefgh1 was', 'the answer to Bearer [redacted] was'],
    [
      'width=64&height=&format=webp&quality=high&animated=false',
      'width=64&height=&format=webp&quality=high&animated=false',
    ],
    [
      '{"monkey":"x","design=a":1,"bearer of news":2}',
      '{"monkey":"x","design=a":1,"bearer of news":2}',
    ],
  ])('%s', (line, expected) => {
    expect(redact(line)).toBe(expected);
  });

  test('leaves lines of JSON what they are, in time, whatever strangers send', () => {
    const hostile = [
      'token='.repeat(20_000),
      `${'authorization:'.repeat(5_000)}"`,
      '\\"signature=\\"'.repeat(5_000),
    ];
    for (const text of hostile) {
      const startedMs = performance.now();
      expect(() => JSON.parse(redact(JSON.stringify({ text })))).not.toThrow();
      expect(performance.now() - startedMs).toBeLessThan(3_000);
    }
  });
});

describe('at a terminal', () => {
  /** A log for a person, and what that person reads, without its colours. */
  async function openTerminal() {
    let text = '';
    const terminal = {
      write: (line: string) => {
        text += line;
      },
    };
    const { log } = await createLog({ level: 'info', secrets: [TOKEN], terminal });
    return { log, read: () => stripVTControlCharacters(text) };
  }

  test('a line is for a person: time, level, message, what belongs to it', async () => {
    const { log, read } = await openTerminal();
    log.info({ status: 200, asset: 'a/b', note: `two words ${TOKEN}` }, 'request');
    log.debug({}, 'not shown');
    expect(read()).toMatch(
      /^\[\d\d:\d\d:\d\d\] INFO: request \{"status":200,"asset":"a\/b","note":"two words \[redacted\]"\} *\n$/,
    );
  });

  test('an error is shown once, with the stacks of its causes', async () => {
    const { log, read } = await openTerminal();
    const root = new Error('no route');
    log.error({ err: new Error('the origin has failed', { cause: root }) }, 'a request failed');
    expect(read()).toMatch(/^\S+ ERROR: a request failed *\n/);
    expect(read().match(/the origin has failed/g)).toHaveLength(1);
    expect(read()).toMatch(/Error: the origin has failed\n +at /);
    expect(read()).toMatch(/caused by: Error: no route\n +at /);
  });

  test('what strangers sent gives the terminal no orders', async () => {
    const { log, read } = await openTerminal();
    const orders = '\u001b[2J\u009b1m\u007f\r\b\\u001b';
    log.error({ asset: orders, err: new Error(orders) }, orders);
    expect(read()).toContain('?[2J?1m???\\u001b');
    expect(read()).not.toMatch(/[^\P{Cc}\n]/u);
  });
});
