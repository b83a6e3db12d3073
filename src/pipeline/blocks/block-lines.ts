import { randomUUID } from 'node:crypto';
import { type Block, blockKinds } from '../../contract/block-order.ts';
import type { SharedObjects } from './ports.ts';

/** First line of a list that Darkroom has written. */
interface ListHead {
  /** Latest generation that is folded into the list. */
  readonly generation: number;
  /** Identity of the list, which another one does not have; empty in a list that somebody else wrote. */
  readonly list: string;
}

/** The list as it was read last. */
export interface Snapshot extends ListHead {
  readonly tag: string;
}

/** A line of the list: a block, or the removal of one. */
export type BlockLine = Block & { readonly removed: boolean };

/** A line, the object that has it, and the offset of its first byte there. */
export interface PlacedLine {
  readonly text: string;
  /** Number of a generation; for the list itself, that of the latest one that it has. */
  readonly object: number;
  readonly first: number;
}

/** Lines from one place on: those of the list, `base`, and of the generations after it up to `last`. */
interface LineRange {
  readonly base: number;
  readonly last: number;
  readonly from: Pick<PlacedLine, 'object' | 'first'>;
}

/** Bytes that are read at once of a list: larger pieces leave more garbage, 90 MiB of it at 1 MiB. */
const PIECE_BYTES = 256 * 1024;

const NEWLINE = 10;

export function formatHead({ generation, list }: ListHead): string {
  return `${JSON.stringify({ generation, list })}\n`;
}

/** Parses the first line; returns `undefined` if it is that of a block. @throws Error if it is neither */
export function parseHead(text: string): ListHead | undefined {
  const value = parseObject(text);
  if (value.kind !== undefined) return undefined;
  const { generation, list } = value;
  if (!Number.isSafeInteger(generation) || typeof list !== 'string') throw notALine(text);
  return { generation: Number(generation), list };
}

export function formatLine({ kind, value, hidden, note, removed }: BlockLine): string {
  return `${JSON.stringify(removed ? { kind, value, removed } : { kind, value, hidden, note })}\n`;
}

/** @throws Error if the line is none of the list */
export function parseLine(text: string): BlockLine {
  const { kind, value, hidden = false, note = '', removed = false } = parseObject(text);
  const known = blockKinds.find((each) => each === kind);
  const isValid =
    typeof value === 'string' && typeof hidden === 'boolean' && typeof note === 'string';
  if (known === undefined || !isValid) throw notALine(text);
  return { kind: known, value, hidden, note, removed: removed === true };
}

function parseObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null)
      return value as Readonly<Record<string, unknown>>;
  } catch {
    // Reported with the others.
  }
  throw notALine(text);
}

/** The line is not shown: logs have no digests. */
function notALine(text: string): Error {
  return new Error(`The list has a line of ${text.length} characters that is no block.`);
}

/**
 * Reads lines of the list and of its generations, in batches of one object.
 *
 * @throws Error if an object is missing, or replaced meanwhile; errors of the place
 */
export async function* readLines(
  objects: SharedObjects,
  { base, last, from }: LineRange,
): AsyncGenerator<readonly PlacedLine[]> {
  for (let object = from.object; object <= last; object += 1) {
    const first = object === from.object ? from.first : 0;
    yield* readObject(objects, object === base ? '' : String(object), object, first);
  }
}

async function* readObject(
  objects: SharedObjects,
  name: string,
  object: number,
  first: number,
): AsyncGenerator<readonly PlacedLine[]> {
  let rest = Buffer.alloc(0);
  let tag: string | undefined;
  for (let offset = first; ; ) {
    const piece = await objects.read(name, { first: offset, lengthBytes: PIECE_BYTES });
    if (piece === undefined) throw new Error('An object of the list is missing.');
    if (tag !== undefined && piece.tag !== tag) throw new Error('The list was replaced meanwhile.');
    tag = piece.tag;
    const bytes = Buffer.concat([rest, piece.bytes]);
    const at = offset - rest.length;
    offset += piece.bytes.length;
    const isEnd = offset >= piece.sizeBytes;
    const lines: PlacedLine[] = [];
    let start = 0;
    while (start < bytes.length) {
      const newline = bytes.indexOf(NEWLINE, start);
      if (newline < 0 && !isEnd) break;
      const end = newline < 0 ? bytes.length : newline;
      const text = bytes.toString('utf8', start, end);
      if (text.trim() !== '') lines.push({ text, object, first: at + start });
      start = end + 1;
    }
    rest = bytes.subarray(start);
    yield lines;
    if (isEnd) return;
  }
}

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
  for (const name of old) await objects.remove(name);
}
