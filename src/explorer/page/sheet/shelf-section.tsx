import { signal } from '@preact/signals';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { formatHeading } from '../labels.ts';
import { askFacts, type Frame, hasFacts, type Shelf } from '../originals.ts';
import { shapeOf } from '../thumbnail.ts';
import { FrameItem } from './frame-item.tsx';

/** Rows of frames that come and go together. */
const ROWS_TOGETHER = 8;

/** Measures of the sheet, in rem: `contact-sheet.css` has the same. */
const GAP_REM = 0.5;
const LEAST_REM = { square: 4.25, wide: 8.5, broad: 8.5 } as const;
const CAPTION_REM = 1.375;
/** Height of a frame by its width. */
const HEIGHTS = { square: 1, wide: 10 / 16, broad: 1 / 3 } as const;

/** Kinds whose frames are folded away. */
export const folded = signal<ReadonlySet<string>>(new Set());

interface ShelfSectionProps {
  readonly shelf: Shelf;
  readonly isAlwaysThere: boolean;
  readonly widthRem: number;
  readonly stopId: string | undefined;
  readonly current: Frame | undefined;
  readonly onFocus: (id: string) => void;
}

/** The originals of a kind, which can be folded away. */
export function ShelfSection({
  shelf,
  isAlwaysThere,
  widthRem,
  stopId,
  current,
  onFocus,
}: ShelfSectionProps) {
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
            stopId={stopId}
            current={current}
            onFocus={onFocus}
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
  readonly stopId: string | undefined;
  readonly current: Frame | undefined;
  readonly onFocus: (id: string) => void;
}

/** Some rows of frames. Those that are far from the screen are as high, and empty. */
function Chunk({ shape, frames, heightRem, isAlwaysThere, stopId, current, onFocus }: ChunkProps) {
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
    if (isNear) askFacts(frames.filter(hasFacts).map(toChoice));
  }, [isNear, frames]);
  const hasStop = frames.some(({ id }) => id === stopId || id === current?.id);
  const isThere = isAlwaysThere || isNear || hasStop;
  return (
    <ul ref={list} class={`frames ${shape}`} style={{ minHeight: `${heightRem}rem` }}>
      {isThere &&
        frames.map((frame) => (
          <FrameItem
            key={frame.id}
            frame={frame}
            isStop={frame.id === stopId}
            isCurrent={frame.id === current?.id}
            onFocus={onFocus}
          />
        ))}
    </ul>
  );
}

function toChoice({ resource, original: { values } }: Frame) {
  return { resource, values };
}

/** How the frames of a kind lie on a sheet: what the style sheet does, in numbers. */
export function layOut({ resource }: Shelf, widthRem: number) {
  const shape = shapeOf(resource.name);
  const columns = Math.max(1, Math.floor((widthRem + GAP_REM) / (LEAST_REM[shape] + GAP_REM)));
  const frameRem = (widthRem - GAP_REM * (columns - 1)) / columns;
  const captionRem = resource.name === 'attachment' ? CAPTION_REM : 0;
  return { columns, rowRem: frameRem * HEIGHTS[shape] + captionRem + GAP_REM };
}
