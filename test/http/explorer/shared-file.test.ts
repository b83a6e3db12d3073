import { describe, expect, it } from 'vitest';
import type { ExplorerFile } from '../../../src/explorer/explorer-files.ts';
import { SharedFile } from '../../../src/http/explorer/shared-file.ts';
import { FakeClock } from '../../support/test-app.ts';

/** Makes a file that says the how many-th it is; fails while it is told to. */
class CountingMaker {
  made = 0;
  failure: Error | undefined;

  readonly make = async (): Promise<ExplorerFile> => {
    this.made += 1;
    const body = Buffer.from(String(this.made));
    await undefined;
    if (this.failure !== undefined) throw this.failure;
    return { mimeType: 'text/plain', body };
  };
}

function create() {
  const maker = new CountingMaker();
  const clock = new FakeClock();
  return { maker, clock, file: new SharedFile(maker.make, clock) };
}

describe('a shared file', () => {
  it('is made once for all who ask meanwhile: they get the same bytes, not copies', async () => {
    const { maker, file } = create();
    const files = await Promise.all(Array.from({ length: 100 }, () => file.read()));
    expect(maker.made).toBe(1);
    expect(new Set(files.map(({ body }) => body)).size).toBe(1);
  });

  it('is kept for two seconds from when it was made, and is made anew then', async () => {
    const { maker, clock, file } = create();
    const first = await file.read();
    clock.advance(1_999);
    expect((await file.read()).body).toBe(first.body);
    expect(maker.made).toBe(1);
    clock.advance(1);
    const [second, third] = await Promise.all([file.read(), file.read()]);
    expect(String(second.body)).toBe('2');
    expect(third.body).toBe(second.body);
    expect(maker.made).toBe(2);
  });

  it('fails for those who wait for it, and for nobody after them', async () => {
    const { maker, file } = create();
    maker.failure = new Error('no storage');
    const answers = await Promise.allSettled([file.read(), file.read()]);
    expect(answers.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(maker.made).toBe(1);
    maker.failure = undefined;
    expect(String((await file.read()).body)).toBe('2');
  });
});
