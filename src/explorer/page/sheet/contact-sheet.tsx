import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { listing, type Shelf, visibleShelves } from '../originals.ts';
import { focusedId, openFrames, openShelves, stopId } from '../state.ts';
import { SheetFilter } from './sheet-filter.tsx';
import { type FrameGroup, findNextFrame } from './sheet-layout.ts';
import { layOut, ShelfSection } from './shelf-section.tsx';

/** Frames up to this number are always rendered; beyond, only those near the screen. */
const ALWAYS_THERE = 400;

/** All listed originals, by kind: each links to the workbench. */
export function ContactSheet() {
  const root = useRef<HTMLElement>(null);
  const widthRem = useWidthRem(root);
  const found = listing.value;

  const move = (event: KeyboardEvent): void => {
    if (!(event.target instanceof HTMLElement) || event.target.dataset.frame === undefined) return;
    const groups = openShelves.value.map(
      (shelf): FrameGroup => ({
        frames: shelf.frames.length,
        columns: layOut(shelf, widthRem).columns,
      }),
    );
    const frames = openFrames.value;
    const here = frames.findIndex(({ id }) => id === stopId.value);
    const next = findNextFrame(groups, here, event.key);
    const frame = next === undefined ? undefined : frames[next];
    if (frame === undefined) return;
    event.preventDefault();
    focusedId.value = frame.id;
    // The frame may have to be rendered first.
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
      {/* The number of columns must be known first, or frames would move. */}
      {(widthRem > 0 ? visibleShelves.value : []).map((shelf) => {
        const first = before;
        before += shelf.frames.length;
        return (
          <ShelfSection
            key={shelf.resource.name}
            shelf={shelf}
            isAlwaysThere={first + shelf.frames.length <= ALWAYS_THERE}
            widthRem={widthRem}
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

/** Returns the inner width of an element; 0 until measured. */
function useWidthRem(element: { readonly current: HTMLElement | null }): number {
  const [widthRem, setWidthRem] = useState(0);
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
