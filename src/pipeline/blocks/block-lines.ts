import { blockKinds } from '../../contract/block-request.ts';
import { BlockIndex, type ListedBlock } from './block-index.ts';
import { MAX_OBJECT_BYTES } from './ports.ts';

/** Maximum number of blocks (contract §15). */
export const MAX_ENTRIES = 100_000;

/** Lines parsed or formatted without yielding to the event loop; they take some milliseconds. */
const LINES_PER_BATCH = 2_000;

const NEWLINE = 10;

export interface ParsedList {
  /** Number of changes since the list was created; 0 if undeclared. */
  readonly generation: number;
  readonly index: BlockIndex;
  /** Whether an earlier release wrote the list; it kept later changes in other objects. */
  readonly isEarlier: boolean;
}

/** @throws Error for a line that is not valid; for too many blocks */
export async function parseList(bytes: Uint8Array): Promise<ParsedList> {
  const index = new BlockIndex();
  let head: Omit<ParsedList, 'index'> = { generation: 0, isEarlier: false };
  let count = 0;
  for (const line of splitLines(bytes)) {
    count += 1;
    const fields = parseObject(line);
    if (count === 1 && fields.kind === undefined) head = parseHead(fields, line);
    else index.set(parseBlock(fields, line));
    if (count % LINES_PER_BATCH === 0) await new Promise(setImmediate);
  }
  // The list of an earlier release is checked when it is rewritten: later changes may remove entries.
  if (!head.isEarlier && index.size > MAX_ENTRIES) throw new Error(tooMany(`${index.size} blocks`));
  return { ...head, index };
}

/** @throws RangeError if the list has too many blocks or bytes */
export async function formatList({
  generation,
  index,
}: Pick<ParsedList, 'generation' | 'index'>): Promise<Uint8Array> {
  const { all } = index;
  if (all.length > MAX_ENTRIES) throw new RangeError(tooMany(`${all.length} blocks`));
  const pieces = [Buffer.from(`${JSON.stringify({ generation })}\n`)];
  for (let first = 0; first < all.length; first += LINES_PER_BATCH) {
    const lines = all.slice(first, first + LINES_PER_BATCH).map((block) => JSON.stringify(block));
    pieces.push(Buffer.from(`${lines.join('\n')}\n`));
    await new Promise(setImmediate);
  }
  const bytes = Buffer.concat(pieces);
  if (bytes.length > MAX_OBJECT_BYTES) throw new RangeError(tooMany(`${bytes.length} bytes`));
  return bytes;
}

export function* splitLines(bytes: Uint8Array): Generator<string> {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let start = 0; start < buffer.length; ) {
    const newline = buffer.indexOf(NEWLINE, start);
    const end = newline < 0 ? buffer.length : newline;
    const line = buffer.toString('utf8', start, end);
    if (line.trim() !== '') yield line;
    start = end + 1;
  }
}

/** @throws Error without the line, since logs must not contain digests */
export function parseObject(line: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value === 'object' && value !== null)
      return value as Readonly<Record<string, unknown>>;
  } catch {
    // Reported below.
  }
  throw invalidLine(line);
}

export function parseBlock(fields: Readonly<Record<string, unknown>>, line: string): ListedBlock {
  const { kind: name, value, hidden = false, note = '', repeatedAt } = fields;
  const kind = blockKinds.find((each) => each === name);
  const isValid =
    typeof value === 'string' && typeof hidden === 'boolean' && typeof note === 'string';
  if (kind === undefined || !isValid) throw invalidLine(line);
  const repeated = Number.isSafeInteger(repeatedAt) && { repeatedAt: Number(repeatedAt) };
  return { kind, value, hidden, note, ...repeated };
}

function parseHead({ generation, list }: Readonly<Record<string, unknown>>, line: string) {
  if (!Number.isSafeInteger(generation)) throw invalidLine(line);
  return { generation: Number(generation), isEarlier: list !== undefined };
}

function invalidLine(line: string): Error {
  return new Error(`Block list line of ${line.length} characters is not a valid entry.`);
}

function tooMany(size: string): string {
  return `The list of blocks would have ${size}; the maximum is ${MAX_ENTRIES} blocks and ${MAX_OBJECT_BYTES} bytes.`;
}
