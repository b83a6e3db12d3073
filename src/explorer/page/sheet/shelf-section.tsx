import { useComputed } from '@preact/signals';
import type { CSSProperties } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { formatBytes, formatHeading } from '../labels.ts';
import { formatTarget } from '../media-choice.ts';
import { askFacts, type Frame, facts, isPicture, type Shelf } from '../originals.ts';
import { currentFrame, focusedId, folded, stopId } from '../state.ts';
import { nameOf } from '../take-away.ts';
import { chooseFirst, endingOfFile, formatThumbnail, isCutOut, shapeOf } from '../thumbnail.ts';

/** Rows of frames that are rendered together. */
const ROWS_TOGETHER = 8;

/** Least widths of frames, in rem. */
const SQUARE_REM = 4.25;
const WIDE_REM = 8.5;

/** Dimensions of the sheet, in rem: the same as in `contact-sheet.css`. */
const GAP_REM = 0.5;
const CAPTION_REM = 1.375;

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
  const { shape, columns, rowRem } = layOut(shelf, widthRem);
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
            frames={chunk}
            style={{
              '--columns': columns,
              '--shape': shape,
              minHeight: `${Math.ceil(chunk.length / columns) * rowRem}rem`,
            }}
            isAlwaysThere={isAlwaysThere || index === 0}
          />
        ))}
    </section>
  );
}

interface ChunkProps {
  readonly frames: readonly Frame[];
  readonly style: CSSProperties;
  readonly isAlwaysThere: boolean;
}

/** Some rows of frames. Far from the screen, they keep their height and are empty. */
function Chunk({ frames, style, isAlwaysThere }: ChunkProps) {
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
    if (isNear) askFacts(frames.filter(isPicture));
  }, [isNear, frames]);
  const hasStop = frames.some(({ id }) => id === stopId.value || id === currentFrame.value?.id);
  const isThere = isAlwaysThere || isNear || hasStop;
  return (
    <ul ref={list} class="frames" style={style}>
      {isThere && frames.map((frame) => <FrameItem key={frame.id} frame={frame} />)}
    </ul>
  );
}

/** An original: a link to the workbench. Animations are marked, and play while pointed at. */
function FrameItem({ frame }: { readonly frame: Frame }) {
  const { id, resource, label } = frame;
  const isStop = useComputed(() => stopId.value === id).value;
  const isCurrent = useComputed(() => currentFrame.value?.id === id).value;
  const link = useRef<HTMLAnchorElement>(null);
  const [isPointedAt, setIsPointedAt] = useState(false);
  const [isBroken, setIsBroken] = useState(false);
  useLayoutEffect(() => {
    if (isCurrent) link.current?.scrollIntoView({ block: 'nearest' });
  }, [isCurrent]);
  const isMoving = facts.value.get(id)?.isMoving === true;
  const name = nameOf(frame);
  const size = formatBytes(frame.sizeBytes);
  const shows = (isShown: boolean) => () => setIsPointedAt(isShown);
  return (
    <li>
      <a
        ref={link}
        href={`#${formatTarget(chooseFirst(frame, isMoving))}`}
        aria-label={`${resource.name} ${label}, ${size}${isMoving ? ', moves' : ''}`}
        aria-current={isCurrent ? 'true' : undefined}
        title={`${name}, ${size}`}
        tabIndex={isStop ? 0 : -1}
        data-frame={id}
        onFocus={() => {
          focusedId.value = id;
          setIsPointedAt(true);
        }}
        onBlur={shows(false)}
        onMouseEnter={shows(true)}
        onMouseLeave={shows(false)}
      >
        {isBroken ? (
          <span class="card" data-word="no picture" />
        ) : isPicture(frame) ? (
          <img
            class={isCutOut(frame) ? 'whole' : undefined}
            loading="lazy"
            fetchpriority="low"
            decoding="async"
            alt=""
            onError={() => setIsBroken(true)}
            src={formatThumbnail(frame, isMoving && isPointedAt && mayMove())}
          />
        ) : (
          <span class="card" data-word={endingOfFile(name)} />
        )}
        {isMoving && <span class="moves" aria-hidden="true" />}
        {resource.name === 'attachment' && <span class="caption">{name}</span>}
      </a>
    </li>
  );
}

function mayMove(): boolean {
  return !matchMedia('(prefers-reduced-motion: reduce)').matches;
}

export function layOut({ resource }: Shelf, widthRem: number) {
  const shape = shapeOf(resource.name);
  const leastRem = shape > 1 ? WIDE_REM : SQUARE_REM;
  const columns = Math.max(1, Math.floor((widthRem + GAP_REM) / (leastRem + GAP_REM)));
  const frameRem = (widthRem - GAP_REM * (columns - 1)) / columns;
  const captionRem = resource.name === 'attachment' ? CAPTION_REM : 0;
  return { shape, columns, rowRem: frameRem / shape + captionRem + GAP_REM };
}
