import { hasAscii } from '../byte-reader.ts';
import { isGif } from '../gif/gif-blocks.ts';
import { isHeif, sniffHeifType } from '../heif/heif-header.ts';
import { isJpeg } from '../jpeg/jpeg-segments.ts';
import { isPng } from '../png/png-chunks.ts';
import { sniffAv } from '../video/sniff-av.ts';
import { isWebp } from '../webp/riff-chunks.ts';
import { cleanGif } from './gif-cleaner.ts';
import { cleanIso } from './iso-cleaner.ts';
import { cleanJpeg } from './jpeg-cleaner.ts';
import { cleanPng } from './png-cleaner.ts';
import { MetadataRemovalError, type Steps, StreamEditor } from './stream-editor.ts';
import { cleanWebp } from './webp-cleaner.ts';

export { MetadataRemovalError };

/** Removes metadata from a streamed file in constant memory and linear time. Methods throw `MetadataRemovalError`. */
export interface MetadataCleaner {
  /** Returns the final cleaned bytes; buffers at most 64 KiB (of a HEIC, its index). May share memory with `chunk`. */
  write(chunk: Uint8Array): readonly Uint8Array[];
  /** Returns the remaining bytes; the total length equals the input's. */
  end(): readonly Uint8Array[];
  /** Whether any bytes have been overwritten so far. */
  readonly hasRemoved: boolean;
}

interface CleanableFormat {
  /** For error messages. */
  readonly name: string;
  readonly matches: (prefix: Uint8Array) => boolean;
  /** Consumes the complete input. */
  readonly clean: (editor: StreamEditor) => Steps;
}

const FORMATS: readonly CleanableFormat[] = [
  { name: 'JPEG', matches: isJpeg, clean: cleanJpeg },
  { name: 'PNG', matches: isPng, clean: cleanPng },
  { name: 'WebP', matches: isWebp, clean: cleanWebp },
  { name: 'GIF', matches: isGif, clean: cleanGif },
  {
    name: 'AVIF',
    matches: (prefix) => sniffHeifType(prefix) === 'image/avif',
    clean: (editor) => cleanIso(editor, true),
  },
  { name: 'HEIC', matches: isHeif, clean: (editor) => cleanIso(editor, true) },
  {
    name: 'MOV',
    matches: (prefix) => sniffAv(prefix) === 'mov',
    clean: (editor) => cleanIso(editor, false),
  },
  {
    name: 'MP4',
    // Canon's raw pictures use this container, but need boxes for decoding that are metadata in a movie.
    matches: (prefix) => sniffAv(prefix) === 'mp4' && !hasAscii(prefix, 8, 'crx '),
    clean: (editor) => cleanIso(editor, false),
  },
];

/** Returns `undefined` for a format that is stored unchanged. @param prefix at least 4 KiB, or the complete file */
export function createMetadataCleaner(prefix: Uint8Array): MetadataCleaner | undefined {
  const format = FORMATS.find(({ matches }) => matches(prefix));
  if (format === undefined) return undefined;
  const editor = new StreamEditor(format.name);
  const steps = format.clean(editor);
  let error: MetadataRemovalError | undefined;
  const resume = (): readonly Uint8Array[] => {
    if (error !== undefined) throw error;
    try {
      steps.next();
      return editor.takeOutput();
    } catch (cause) {
      // No file may crash the main process.
      error =
        cause instanceof MetadataRemovalError
          ? cause
          : new MetadataRemovalError(`The ${format.name} is damaged.`, { cause });
      throw error;
    }
  };
  return {
    write(chunk) {
      if (chunk.length === 0) return [];
      editor.append(chunk);
      return resume();
    },
    end() {
      editor.finish();
      return resume();
    },
    get hasRemoved() {
      return editor.hasChanged;
    },
  };
}
