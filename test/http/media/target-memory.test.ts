import { describe, expect, it } from 'vitest';
import { parseTarget, resultKey } from '../../../src/contract/media-request.ts';
import { TargetMemory } from '../../../src/http/media/target-memory.ts';

function read(target: string) {
  const parsed = parseTarget(target);
  return parsed.kind === 'media' ? parsed.request : expect.fail('no media');
}

const pathOf = (id: number): string => `/avatars/${id}/ab.webp?size=64`;

describe('the memory of targets', () => {
  it('gives what was read, with its key', () => {
    const memory = new TargetMemory();
    const request = read(pathOf(1));
    expect(memory.find(pathOf(1))).toBeUndefined();
    memory.note(pathOf(1), request);
    expect(memory.find(pathOf(1))).toEqual({ request, key: resultKey(request) });
    expect(memory.find(`${pathOf(1)}&x=1`)).toBeUndefined();
  });

  it('forgets what nobody asks for, and keeps what somebody does', () => {
    const memory = new TargetMemory();
    for (let id = 0; id < 40_000; id += 1) {
      memory.note(pathOf(id), read(pathOf(id)));
      expect(memory.find(pathOf(7))?.key === undefined).toBe(id < 7);
    }
    const kept = Array.from({ length: 40_000 }, (_, id) => memory.find(pathOf(id)) !== undefined);
    const count = kept.filter(Boolean).length;
    expect(count).toBeGreaterThan(4_000);
    expect(count).toBeLessThanOrEqual(8_192);
    expect(kept.at(-1)).toBe(true);
    expect(kept[8]).toBe(false);
  });

  it('takes no long ones', () => {
    const memory = new TargetMemory();
    const long = `${pathOf(1)}&x=${'a'.repeat(300)}`;
    memory.note(long, read(long));
    expect(memory.find(long)).toBeUndefined();
  });
});
