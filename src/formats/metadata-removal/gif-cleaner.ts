import { hasAscii } from '../byte-reader.ts';
import { colourTableBytes, gifBlock, gifLabel, SCREEN_BYTES } from '../gif/gif-blocks.ts';
import type { Steps, StreamEditor } from './stream-editor.ts';

/** Application extensions (GIF89a §26) with an animation's number of plays, by identifier and authentication code. */
const KEPT_APPLICATIONS = ['NETSCAPE2.0', 'ANIMEXTS1.0'];
const APPLICATION_BYTES = 11;

/** Labels of extensions that browsers or decoders need for drawing: plain text and graphic control. */
const KEPT_LABELS: readonly number[] = [0x01, gifLabel.graphicControl];

/** Label of an overwritten extension: readers skip unknown labels (GIF89a §16). */
const ERASED_LABEL = 0x00;

/** Maximum bytes of a sub-block with its size (GIF89a §15). */
const MAX_SUB_BLOCK_BYTES = 256;

/** Bytes of the image descriptor; the last one has the flags of the colour table (GIF89a §20). */
const DESCRIPTOR_BYTES = 10;

/** Overwrites the metadata of a GIF, and everything after its trailer. */
export function* cleanGif(editor: StreamEditor): Steps {
  const screen = yield* editor.require(SCREEN_BYTES);
  yield* editor.keep(SCREEN_BYTES + colourTableBytes(screen[10] ?? 0));
  let hasImage = false;
  for (;;) {
    editor.countPart();
    // Decoders accept a file without a trailer.
    if (yield* editor.isAtEnd()) return;
    const [code] = yield* editor.require(1);
    if (code === gifBlock.trailer) {
      yield* editor.keep(1);
      return yield* editor.zeroRest();
    }
    if (code === gifBlock.extension) yield* cleanExtension(editor);
    else if (code === gifBlock.image) {
      const descriptor = yield* editor.require(DESCRIPTOR_BYTES);
      // The LZW code size follows the colour table.
      yield* editor.keep(DESCRIPTOR_BYTES + colourTableBytes(descriptor[9] ?? 0) + 1);
      yield* keepSubBlocks(editor);
      hasImage = true;
    } else if (hasImage) {
      // Decoders stop at bytes that are not a block. Some encoders write a zero before the trailer.
      return yield* editor.zeroRest();
    } else throw editor.damaged('unknown block');
  }
}

function* cleanExtension(editor: StreamEditor): Steps {
  const [introducer = 0, label = 0, size = 0] = yield* editor.require(3);
  const isEmptyComment = label === gifLabel.comment && size === 0;
  // In other extensions, browsers accept the zero as the end, but libnsgif does not.
  if (size === 0 && !isEmptyComment) throw editor.damaged('an extension without data');
  let isKept = isEmptyComment || KEPT_LABELS.includes(label);
  if (label === gifLabel.application && size === APPLICATION_BYTES) {
    const application = yield* editor.require(3 + APPLICATION_BYTES);
    isKept = KEPT_APPLICATIONS.some((name) => hasAscii(application, 3, name));
  }
  if (isKept) {
    yield* editor.keep(2);
    yield* keepSubBlocks(editor);
  } else {
    yield* editor.overwrite(Buffer.of(introducer, ERASED_LABEL));
    yield* eraseSubBlocks(editor);
  }
}

function* keepSubBlocks(editor: StreamEditor): Steps {
  for (;;) {
    const chunk = yield* editor.peekChunk();
    if (chunk.length === 0) throw editor.truncated();
    let end = 0;
    for (let size = chunk[end]; size !== undefined && size > 0; size = chunk[end]) end += size + 1;
    const isEnded = chunk[end] === 0;
    yield* editor.keep(isEnded ? end + 1 : end);
    if (isEnded) return;
  }
}

/** Replaces sub-blocks by zeros in sub-blocks of the maximum size, since XMP has text instead of sub-blocks. */
function* eraseSubBlocks(editor: StreamEditor): Steps {
  /** Bytes of complete sub-blocks that are still to be overwritten. */
  let ahead = 0;
  for (let isEnded = false; !isEnded; ) {
    yield* editor.require(ahead + 1);
    const chunk = yield* editor.peekChunk();
    for (let size = chunk[ahead]; size !== undefined && size > 0; size = chunk[ahead]) {
      ahead += size + 1;
    }
    isEnded = chunk[ahead] === 0;
    // Leaves one block, so that sub-blocks can fill the length of the rest.
    const blocks = Math.floor(ahead / MAX_SUB_BLOCK_BYTES) - 1;
    if (blocks > 0) {
      yield* writeSubBlocks(editor, blocks * MAX_SUB_BLOCK_BYTES);
      ahead -= blocks * MAX_SUB_BLOCK_BYTES;
    }
  }
  if (ahead > MAX_SUB_BLOCK_BYTES) {
    // A sub-block takes at least two bytes.
    const bytes = Math.min(MAX_SUB_BLOCK_BYTES, ahead - 2);
    yield* writeSubBlocks(editor, bytes);
    ahead -= bytes;
  }
  if (ahead > 0) yield* writeSubBlocks(editor, ahead);
  yield* editor.keep(1);
}

/** Writes sub-blocks of zeros: those of the maximum size, or a shorter one. */
function* writeSubBlocks(editor: StreamEditor, bytes: number): Steps {
  const blocks = Buffer.alloc(bytes);
  for (let at = 0; at < bytes; at += MAX_SUB_BLOCK_BYTES) {
    blocks[at] = Math.min(bytes, MAX_SUB_BLOCK_BYTES) - 1;
  }
  yield* editor.overwrite(blocks);
}
