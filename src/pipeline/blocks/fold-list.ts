import { randomUUID } from 'node:crypto';
import {
  formatHead,
  formatLine,
  type ListHead,
  type PlacedLine,
  parseLine,
  readLines,
} from './block-lines.ts';
import type { SharedObjects } from './ports.ts';

/** The list as it was read last. */
export interface Snapshot extends ListHead {
  readonly tag: string;
}

/** Generations that are removed at a time. */
const PARALLEL = 8;

/** Whether the name of an object is that of a generation. */
export function isGeneration(name: string): boolean {
  return /^\d+$/.test(name);
}

/**
 * Folds a snapshot and the generations up to `last` into a new snapshot, in constant memory, unless another replica has
 * done so; then removes these generations.
 *
 * @param isLive whether a line still counts
 * @throws Error of the place; of a line that is none of the list
 */
export async function foldList(
  objects: SharedObjects,
  before: Snapshot,
  last: number,
  isLive: (line: PlacedLine) => boolean,
): Promise<void> {
  const head = { generation: last, list: before.list || randomUUID() };
  const first = Buffer.from(formatHead(head));
  const kept: boolean[] = [];
  let sizeBytes = first.length;
  const from = { object: before.generation, first: 0 };
  const all = { base: before.generation, last, from };
  for await (const lines of readLines(objects, all)) {
    for (const line of lines) {
      const isKept = isLive(line);
      kept.push(isKept);
      if (isKept) sizeBytes += Buffer.byteLength(formatLine(parseLine(line.text)));
    }
  }
  const chunks = async function* (): AsyncGenerator<Uint8Array> {
    yield first;
    let position = 0;
    for await (const lines of readLines(objects, all)) {
      const live = lines.filter((_, index) => kept[position + index] === true);
      position += lines.length;
      yield Buffer.from(live.map(({ text }) => formatLine(parseLine(text))).join(''));
    }
  };
  const tag = await objects.write('', { sizeBytes, chunks }, { tag: before.tag });
  if (tag === undefined) return;
  const old = (await objects.list('')).filter((name) => isGeneration(name) && Number(name) <= last);
  const removeNext = async (): Promise<void> => {
    for (let name = old.pop(); name !== undefined; name = old.pop()) await objects.remove(name);
  };
  await Promise.all(Array.from({ length: PARALLEL }, removeNext));
}
