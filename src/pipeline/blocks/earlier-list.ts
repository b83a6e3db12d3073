import { formatList, parseBlock, parseList, parseObject, splitLines } from './block-lines.ts';
import type { SharedObjects } from './ports.ts';

const PARALLEL = 16;

/**
 * Rewrites the list of an earlier release, which stored each later change in an object named by its generation.
 * Replicas of that release reject changes from then on.
 *
 * @throws Error of the storage, or if the list is missing although there are changes
 */
export async function rewriteEarlierList(objects: SharedObjects): Promise<void> {
  for (;;) {
    const changes = (await objects.list('')).filter((name) => /^\d+$/.test(name)).map(Number);
    const found = await objects.read('');
    if (found === undefined && changes.length > 0) {
      throw new Error('The list of blocks is missing, but later changes to it exist.');
    }
    if (found === undefined) return;
    const { index, isEarlier, ...list } = await parseList(found.bytes);
    let { generation } = list;
    while (changes.includes(generation + 1)) {
      const numbers = Array.from({ length: PARALLEL }, (_, offset) => generation + 1 + offset);
      const read = await Promise.all(numbers.map((number) => objects.read(String(number))));
      const end = read.indexOf(undefined);
      for (const object of end < 0 ? read : read.slice(0, end)) {
        for (const line of splitLines(object?.bytes ?? new Uint8Array())) {
          const fields = parseObject(line);
          const block = parseBlock(fields, line);
          if (fields.removed === true) index.delete(block);
          else index.set(block);
        }
        generation += 1;
      }
      if (end === 0) break; // another replica has rewritten the list
    }
    const isChanged = isEarlier || generation > list.generation;
    if (isChanged) {
      const bytes = await formatList({ generation, index });
      if ((await objects.write('', bytes, { tag: found.tag })) === undefined) continue;
    }
    const applied = changes.filter((change) => change <= generation);
    for (let first = 0; first < applied.length; first += PARALLEL) {
      const batch = applied.slice(first, first + PARALLEL);
      await Promise.all(batch.map((change) => objects.remove(String(change))));
    }
    // Meanwhile, a replica of the earlier release may have written a change.
    if (!isChanged) return;
  }
}
