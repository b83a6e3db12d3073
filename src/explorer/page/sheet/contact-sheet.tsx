import { signal } from '@preact/signals';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { formatHeading } from '../labels.ts';
import {
  askFacts,
  type Frame,
  hasFacts,
  listing,
  type Shelf,
  visibleShelves,
} from '../originals.ts';
import { shapeOf } from '../thumbnail.ts';
import { currentFrame } from '../workbench.ts';
import { FrameItem } from './frame-item.tsx';
import { SheetFilter } from './sheet-filter.tsx';
import { type FrameGroup, findNextFrame } from './sheet-layout.ts';

/** So many frames are always there; of longer sheets, those alone that are about to be seen. */
const ALWAYS_THERE = 400;

/** Rows of frames that come and go together. */
const ROWS_TOGETHER = 8;

/** Measures of the sheet, in rem: `contact-sheet.css` has the same. */
const GAP_REM = 0.5;
const LEAST_REM = { square: 4.25, wide: 8.5, broad: 8.5 } as const;
const CAPTION_REM = 1.375;
/** Height of a frame by its width. */
const HEIGHTS = { square: 1, wide: 10 / 16, broad: 1 / 3 } as const;

/** The frame at which the Tab key stops, by its id; where there is none, it is the current one or the first. */
const stop = signal<string>();
/** Kinds whose frames are folded away. */
const folded = signal<ReadonlySet<string>>(new Set());

/** All originals that were found, by kind: each a link to its place on the workbench. */
export function ContactSheet() {
  const root = useRef<HTMLElement>(null);
  const widthRem = useWidthRem(root);
  const found = listing.value;
  const shelves = visibleShelves.value;
  const open = shelves.filter(({ resource }) => !folded.value.has(resource.name));
  const frames = open.flatMap((shelf) => shelf.frames);
  const current = currentFrame.value;
  const isThere = (id: string | undefined) => frames.some((frame) => frame.id === id);
  const stopId = isThere(stop.value)
    ? stop.value
    : isThere(current?.id)
      ? current?.id
      : frames[0]?.id;

  const move = (event: KeyboardEvent): void => {
    if (!(event.target instanceof HTMLElement) || event.target.dataset.frame === undefined) return;
    const groups = open.map(
      (shelf): FrameGroup => ({
        frames: shelf.frames.length,
        columns: layOut(shelf, widthRem).columns,
      }),
    );
    const here = frames.findIndex(({ id }) => id === stopId);
    const next = findNextFrame(groups, here, event.key);
    const frame = next === undefined ? undefined : frames[next];
    if (frame === undefined) return;
    event.preventDefault();
    stop.value = frame.id;
    // It may have to be made first.
    queueMicrotask(() => focusFrame(root.current, frame.id));
  };

  let before = 0;
  return (
    <nav class="sheet" id="sheet" ref={root} aria-label="Originals" onKeyDown={move}>
      {found.kind === 'failure' ? (
        <div class="notice">
          <h2>The originals cannot be listed</h2>
          <p>
            <code>{found.code}</code> {found.message}
          </p>
        </div>
      ) : (
        <SheetFilter />
      )}
      {found.kind === 'shelves' && <Emptiness shelves={found.shelves} />}
      {shelves.map((shelf) => {
        const first = before;
        before += shelf.frames.length;
        return (
          <ShelfSection
            key={shelf.resource.name}
            shelf={shelf}
            isAlwaysThere={first + shelf.frames.length <= ALWAYS_THERE}
            widthRem={widthRem}
            stopId={stopId}
            current={current}
          />
        );
      })}
    </nav>
  );
}

function focusFrame(root: HTMLElement | null, id: string, isLast = false): void {
  const links = root?.querySelectorAll<HTMLElement>('a[data-frame]') ?? [];
  const link = [...links].find((each) => each.dataset.frame === id);
  if (link !== undefined) link.focus();
  else if (!isLast) requestAnimationFrame(() => focusFrame(root, id, true));
}

interface ShelfSectionProps {
  readonly shelf: Shelf;
  readonly isAlwaysThere: boolean;
  readonly widthRem: number;
  readonly stopId: string | undefined;
  readonly current: Frame | undefined;
}

function ShelfSection({ shelf, isAlwaysThere, widthRem, stopId, current }: ShelfSectionProps) {
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
}

/** Some rows of frames. Those that are far from the screen are as high, and empty. */
function Chunk({ shape, frames, heightRem, isAlwaysThere, stopId, current }: ChunkProps) {
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
            onFocus={setStop}
          />
        ))}
    </ul>
  );
}

function setStop(id: string): void {
  stop.value = id;
}

function toChoice({ resource, original: { values } }: Frame) {
  return { resource, values };
}

function Emptiness({ shelves }: { readonly shelves: readonly Shelf[] }) {
  const isEmpty = shelves.every(
    ({ resource, frames }) => resource.name === 'default avatar' || frames.length === 0,
  );
  if (shelves.length === 0 || !isEmpty) return null;
  return (
    <div class="notice">
      <p>
        There are no originals in the storage yet. An avatar, for example, is a file at
        avatars/&#123;user_id&#125;/&#123;avatar_hash&#125;.
      </p>
    </div>
  );
}

/** How the frames of a kind lie on a sheet: what the style sheet does, in numbers. */
function layOut({ resource }: Shelf, widthRem: number) {
  const shape = shapeOf(resource.name);
  const columns = Math.max(1, Math.floor((widthRem + GAP_REM) / (LEAST_REM[shape] + GAP_REM)));
  const frameRem = (widthRem - GAP_REM * (columns - 1)) / columns;
  const captionRem = resource.name === 'attachment' ? CAPTION_REM : 0;
  return { columns, rowRem: frameRem * HEIGHTS[shape] + captionRem + GAP_REM };
}

/** Width of an element without its padding. */
function useWidthRem(element: { readonly current: HTMLElement | null }): number {
  const [widthRem, setWidthRem] = useState(20);
  useLayoutEffect(() => {
    const rem = Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
    const watch = new ResizeObserver((entries) => {
      const widthPx = entries.at(-1)?.contentRect.width ?? 0;
      if (widthPx > 0) setWidthRem(widthPx / rem);
    });
    if (element.current !== null) watch.observe(element.current);
    return () => watch.disconnect();
  }, [element]);
  return widthRem;
}
