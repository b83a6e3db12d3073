import { type Block, blockKinds } from '../../contract/block-order.ts';
import type { SharedObjects } from './ports.ts';

/** First line of a list that Darkroom has written. */
export interface ListHead {
  /** Latest generation that is folded into the list. */
  readonly generation: number;
  /** Identity of the list, which another one does not have; empty in a list that somebody else wrote. */
  readonly list: string;
}

/** A line of the list: a block, or the removal of one. */
export type BlockLine = Block & { readonly removed: boolean };

/** A line with the offsets of its first byte, and of the next line. */
export interface PlacedLine {
  readonly text: string;
  readonly first: number;
  readonly next: number;
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

export function formatBlock({ kind, value, hidden, note }: Block): string {
  return `${JSON.stringify({ kind, value, hidden, note })}\n`;
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
 * Reads the lines of an object in batches, which belong to one version of it.
 *
 * @param first offset of a line
 * @throws Error if the object is missing, or replaced meanwhile; errors of the place
 */
export async function* readLines(
  objects: SharedObjects,
  name: string,
  first = 0,
): AsyncGenerator<readonly PlacedLine[]> {
  let rest = Buffer.alloc(0);
  let tag: string | undefined;
  for (let offset = first; ; ) {
    const piece = await objects.read(name, { first: offset, lengthBytes: PIECE_BYTES });
    if (piece === undefined) throw new Error('An object of the list is missing.');
    if (tag !== undefined && piece.tag !== tag) throw new Error('The list was replaced meanwhile.');
    tag = piece.tag;
    const bytes = Buffer.concat([rest, piece.bytes]);
    let at = offset - rest.length;
    const lines: PlacedLine[] = [];
    let start = 0;
    for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, start)) {
      const text = bytes.toString('utf8', start, end);
      const next = at + end + 1;
      if (text.trim() !== '') lines.push({ text, first: at + start, next });
      start = end + 1;
    }
    offset += piece.bytes.length;
    rest = bytes.subarray(start);
    at += start;
    const isEnd = offset >= piece.sizeBytes;
    if (isEnd && rest.length > 0) lines.push({ text: rest.toString(), first: at, next: offset });
    yield lines;
    if (isEnd) return;
  }
}
