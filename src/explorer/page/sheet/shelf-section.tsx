import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { formatHeading } from '../labels.ts';
import { askFactsOf, type Frame, type Shelf } from '../originals.ts';
import { currentFrame } from '../state.ts';
import { shapeOf } from '../thumbnail.ts';
import { FrameItem } from './frame-item.tsx';
import { folded, stopId } from './sheet-state.ts';

/** Rows of frames that come and go together. */
const ROWS_TOGETHER = 8;

/** Measures of the sheet, in rem: `contact-sheet.css` has the same. */
const GAP_REM = 0.5;
const LEAST_REM = { square: 4.25, wide: 8.5, broad: 8.5 } as const;
const CAPTION_REM = 1.375;
/** Height of a frame by its width. */
const HEIGHTS = { square: 1, wide: 10 / 16, broad: 1 / 3 } as const;

interface ShelfSectionProps {
  readonly shelf: Shelf;
  readonly isAlwaysThere: boolean;
  readonly widthRem: number;
}

/** The originals of a kind, which can be folded away. */
export function ShelfSection({ shelf, isAlwaysThere, widthRem }: ShelfSectionProps) {
  const { resource, frames, isComplete } = shelf;
  const isFolded = folded.value.has(resource.name);
  const fold = (): void => {
    const others = new Set(folded.value);
    if (!others.delete(resource.name)) others.add(resource.name);
    folded.value = others;
  };
  const { columns, rowRem } = layOut(shelf, widthRem);
  const together = columns * ROWS_TOGETHER;
  const chunks = Array.from({ length: Math.ceil(frames.length / together) }, (_, index) =>
    frames.slice(index * together, (index + 1) * together),
  );
  return (
    <section>
      <h2>
        <button type="button" class="fold" aria-expanded={!isFolded} onClick={fold}>
          {formatHeading(resource.name)}
        </button>
        <span class="soft">
          {isComplete
            ? frames.length.toLocaleString('en')
            : `the first ${frames.length.toLocaleString('en')}`}
        </span>
      </h2>
      {!isFolded &&
        chunks.map((chunk, index) => (
          <Chunk
            key={chunk[0]?.id ?? index}
            shape={shapeOf(resource.name)}
            frames={chunk}
            heightRem={Math.ceil(chunk.length / columns) * rowRem}
            isAlwaysThere={isAlwaysThere || index === 0}
          />
        ))}
    </section>
  );
}

interface ChunkProps {
  readonly shape: string;
  readonly frames: readonly Frame[];
  readonly heightRem: number;
  readonly isAlwaysThere: boolean;
}

/** Some rows of frames. Those that are far from the screen are as high, and empty. */
function Chunk({ shape, frames, heightRem, isAlwaysThere }: ChunkProps) {
  const list = useRef<HTMLUListElement>(null);
  const [isNear, setIsNear] = useState(false);
  useLayoutEffect(() => {
    const watch = new IntersectionObserver(
      (entries) => setIsNear(entries.at(-1)?.isIntersecting ?? false),
      { rootMargin: '600px' },
    );
    if (list.current !== null) watch.observe(list.current);
    return () => watch.disconnect();
  }, []);
  useLayoutEffect(() => {
    if (isNear) askFactsOf(frames);
  }, [isNear, frames]);
  const hasStop = frames.some(({ id }) => id === stopId.value || id === currentFrame.value?.id);
  const isThere = isAlwaysThere || isNear || hasStop;
  return (
    <ul ref={list} class={`frames ${shape}`} style={{ minHeight: `${heightRem}rem` }}>
      {isThere && frames.map((frame) => <FrameItem key={frame.id} frame={frame} />)}
    </ul>
  );
}

/** How the frames of a kind lie on a sheet: what the style sheet does, in numbers. */
export function layOut({ resource }: Shelf, widthRem: number) {
  const shape = shapeOf(resource.name);
  const columns = Math.max(1, Math.floor((widthRem + GAP_REM) / (LEAST_REM[shape] + GAP_REM)));
  const frameRem = (widthRem - GAP_REM * (columns - 1)) / columns;
  const captionRem = resource.name === 'attachment' ? CAPTION_REM : 0;
  return { columns, rowRem: frameRem * HEIGHTS[shape] + captionRem + GAP_REM };
}
