import { readlinkSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import {
  findProcessesOf,
  hasCompiler,
  shareMaliciousDecoder,
  wholeDecoder,
} from '../support/processes/video-decoders.ts';
import { sharePool, usePools } from '../support/processes/worker-pool.ts';
import { hasFfmpeg, runFfmpeg } from '../support/videos.ts';

const start = usePools();

const WIDTH = 64;
const HEIGHT = 48;

/** Encodes one picture of a grey that has luma 100 of 256. */
function encode(pixels: string, coder: string, file: string): Promise<Buffer> {
  const source = `-f lavfi -i color=0x626262:s=${WIDTH}x${HEIGHT} -frames:v 1`;
  return runFfmpeg(`${source} -pix_fmt ${pixels} -c:v ${coder}`, file);
}

const decodeCommand = (codec: string, stream: Buffer, widthPx = WIDTH): string =>
  `decode-stream ${JSON.stringify({
    codec,
    stream: stream.toString('base64'),
    size: { widthPx, heightPx: HEIGHT },
  })}`;

describe.skipIf(!hasFfmpeg)('(ffmpeg is installed) the decoder', () => {
  const shared = sharePool({ videoDecoder: wholeDecoder });

  test('is found with its version, in a full sandbox', async () => {
    expect(await shared.pool.renderer.videoSupport).toEqual({
      isSupported: true,
      program: '/usr/bin/ffmpeg',
      version: expect.stringMatching(/^\d/),
      sandbox: 'bubblewrap',
      isWhole: true,
      refusals: [],
      isIsolated: true,
      user: expect.stringMatching(/^(own|namespace)$/),
      isFiltered: true,
      hasPrivileges: false,
      noNewPrivileges: true,
    });
  });

  // One frame of each codec is in test/http/media/posters; this is the longest frame of its size.
  test('decodes a complete 10-bit 4:4:4 frame', async () => {
    const stream = await encode('yuv444p10le', 'libvpx-vp9', 'a.ivf');
    const frame = Buffer.from(
      await shared.pool.sayByRanges(decodeCommand('vp9', stream)),
      'latin1',
    );
    const at = frame.indexOf('FRAME\n') + 6;
    expect(frame.toString('latin1', 0, at)).toMatch(/^YUV4MPEG2 W64 H48 .*C444p10/);
    expect(frame.length - at).toBe(WIDTH * HEIGHT * 3 * 2);
    expect(Math.abs(frame.readUInt16LE(at) / 4 - 100)).toBeLessThanOrEqual(2);
  });

  test.each([
    ['a playlist', 'h264', Buffer.from('#EXTM3U\n#EXTINF:1,\nhttp://127.0.0.1:1/a.ts\n')],
    ['a script of concat', 'hevc', Buffer.from("ffconcat version 1.0\nfile '/etc/passwd'\n")],
    ['unknown bytes', 'vp9', Buffer.from('x'.repeat(10_000))],
    ['a frame of another codec', 'av1', Buffer.from('DKIF')],
  ])('rejects %s', async (_, codec, stream) => {
    const refused = shared.pool.sayByRanges(decodeCommand(codec, stream));
    await expect(refused).rejects.toMatchObject({ code: 'UNPROCESSABLE_MEDIA' });
    expect(shared.counted().kills).toBe(0);
  });

  test('rejects a truncated frame, and one that is larger than planned', async () => {
    const { sayByRanges } = shared.pool;
    const stream = await encode('yuv420p', 'libx264', 'a.h264');
    const cut = sayByRanges(decodeCommand('h264', stream.subarray(0, stream.length - 8)));
    await expect(cut).rejects.toMatchObject({ code: 'UNPROCESSABLE_MEDIA' });
    const large = sayByRanges(decodeCommand('h264', stream, 2));
    await expect(large).rejects.toMatchObject({ code: 'UNPROCESSABLE_MEDIA' });
  });
});

describe('an unusable decoder', () => {
  const rows: [program: string, reason: string, isFault: boolean, PATH?: string][] = [
    ['off', 'VIDEO_DECODER is off', false],
    ['/nowhere/ffmpeg', '/nowhere/ffmpeg does not exist', true],
    ['/bin/true', '/bin/true cannot be used: bubblewrap: it lacks the decoders h264,', true],
    ['/bin/false', '/bin/false cannot be used: bubblewrap: it ended with status 1', true],
    ['/bin/true', 'bwrap is not installed', true, '/nowhere'],
    ['auto', 'ffmpeg is not installed', false, '/nowhere'],
  ];
  test.each(rows)(
    'is not used, for a reported reason: %s',
    async (program, reason, isFault, path) => {
      const environment = { PATH: path ?? '/usr/bin:/bin' };
      const videoDecoder = { ...wholeDecoder, program };
      const { renderer, sayByRanges } = await start({ videoDecoder, environment });
      expect(await renderer.videoSupport).toEqual({
        isSupported: false,
        reason: expect.stringContaining(reason),
        isFault,
      });
      const unsupported = { code: 'UNSUPPORTED_MEDIA_TYPE' };
      await expect(sayByRanges('decode 1 x')).rejects.toMatchObject(unsupported);
      expect(renderer.counters.kills).toBe(0);
    },
  );
});

describe.skipIf(!hasCompiler)('(gcc is installed) a compromised decoder', () => {
  const decoder = shareMaliciousDecoder();
  const shared = sharePool({ videoDecoder: decoder });
  const request = (attack: string) => shared.pool.sayByRanges(`decode 1 ${attack}`);

  test('passes the trial, and has the full sandbox', async () => {
    const support = await shared.pool.renderer.videoSupport;
    expect(support).toMatchObject({ isWhole: true, version: 'malicious' });
  });

  // Attacks on others, in each sandbox, are in test/hostile/decoder.hostile.test.ts.
  test('can start threads, but no process by any call', async () => {
    for (const [attack, outcome] of [
      ['thread', expect.stringMatching(/^done \d+$/)],
      ['process', 'EPERM'],
      ['thread-namespace', 'EPERM'],
      ['clone3', 'ENOSYS'],
      ['fork', 'EPERM'],
      ['vfork', 'EPERM'],
      ['unix', 'EPERM'],
    ] as const) {
      expect([attack, await request(attack)]).toEqual([attack, outcome]);
    }
  });

  test('cannot create a namespace, and has no device, shell or extra descriptor', async () => {
    for (const [attack, outcome] of [
      ['namespace', 'EPERM'],
      ['list /proc', 'ENOENT'],
      ['list /dev', 'ENOENT'],
      ['shell', 'ENOENT'],
      ['environment', 'PWD=/\n'],
      ['descriptors', '0 1 2 '],
    ] as const) {
      expect([attack, await request(attack)]).toEqual([attack, outcome]);
    }
  });

  test('has limits of memory, CPU time, descriptors and files', async () => {
    expect(await request('limits')).toBe(`${512 * 2 ** 20} 15 0 64`);
    expect(Number(await request('devour'))).toBeLessThan(512);
  });

  test('sees only its own root', async () => {
    const [, top = ''] = decoder.program.split('/');
    expect((await request('list /')).trim().split(' ').sort()).toEqual(['etc', top].sort());
    expect(await request('list /etc')).toBe('ld.so.cache ');
  });

  test.each([
    ['writes more than planned', 'pictures'],
    ['writes without end', 'endless'],
    ['fails', 'status'],
    ['crashes', 'crash'],
  ])('fails its frame if it %s, and leaves no process behind', async (_, attack) => {
    expect(await request(attack)).toBe('UNPROCESSABLE_MEDIA');
    await expect.poll(() => findProcessesOf(decoder.program)).toEqual([]);
    expect(shared.counted().kills).toBe(0);
  });

  test('cannot fill the log, and its frame is accepted despite the attempt', async () => {
    expect(await request('complain')).toBe('done');
    expect(shared.pool.log.entries.length).toBeLessThan(10);
  });

  test.each(['hang', 'stay'])('is killed at the deadline of its job: %s', async (attack) => {
    const { sayByRanges } = shared.pool;
    const late = sayByRanges(`decode 1 ${attack}`, { timeoutMs: 1_000 });
    await expect.poll(() => findProcessesOf(decoder.program).length).toBeGreaterThan(0);
    await expect(late).rejects.toMatchObject({ code: 'TRANSFORM_TIMEOUT' });
    await expect.poll(() => findProcessesOf(decoder.program)).toEqual([]);
    await expect.poll(() => shared.counted().restarts).toBe(1);
  });

  test('shares no namespace with the service, and ends with its caller', async () => {
    const caller = new AbortController();
    const job = shared.pool.sayByRanges('decode 1 hang', { signal: caller.signal });
    await expect.poll(() => findProcessesOf(decoder.program).length).toBe(1);
    const [processId] = findProcessesOf(decoder.program);
    for (const kind of ['net', 'pid', 'mnt', 'ipc', 'uts', 'user']) {
      expect(readlinkSync(`/proc/${processId}/ns/${kind}`)).not.toBe(
        readlinkSync(`/proc/self/ns/${kind}`),
      );
    }
    caller.abort(new Error('no client is left'));
    await expect(job).rejects.toThrow('no client is left');
    await expect.poll(() => findProcessesOf(decoder.program)).toEqual([]);
  });
});
