import { randomUUID } from 'node:crypto';
import {
  formatBlock,
  formatHead,
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
 * @param isLive whether a line of the object with this number still counts
 * @throws Error of the place; of a line that is none of the list
 */
export async function foldList(
  objects: SharedObjects,
  before: Snapshot,
  last: number,
  isLive: (line: PlacedLine, object: number) => boolean,
): Promise<void> {
  const head = { generation: last, list: before.list || randomUUID() };
  const first = Buffer.from(formatHead(head));
  const kept: boolean[] = [];
  let sizeBytes = first.length;
  for await (const [line, object] of allLines(objects, before.generation, last)) {
    const isKept = isLive(line, object);
    kept.push(isKept);
    if (isKept) sizeBytes += Buffer.byteLength(formatBlock(parseLine(line.text)));
  }
  const chunks = async function* (): AsyncGenerator<Uint8Array> {
    yield first;
    let position = 0;
    for await (const [{ text }] of allLines(objects, before.generation, last)) {
      if (kept[position] === true) yield Buffer.from(formatBlock(parseLine(text)));
      position += 1;
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

async function* allLines(
  objects: SharedObjects,
  base: number,
  last: number,
): AsyncGenerator<readonly [PlacedLine, number]> {
  for (let object = base; object <= last; object += 1) {
    for await (const lines of readLines(objects, object === base ? '' : String(object))) {
      for (const line of lines) yield [line, object];
    }
  }
}
