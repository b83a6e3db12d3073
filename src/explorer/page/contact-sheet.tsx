import { useComputed } from '@preact/signals';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { nameOf } from './export.ts';
import { Select } from './fields.tsx';
import { formatBytes, formatHeading } from './labels.ts';
import { formatTarget } from './media-choice.ts';
import {
  type Entry,
  filter,
  isPicture,
  listing,
  properties,
  requestProperties,
  type Shelf,
  shelves,
  visibleShelves,
} from './originals.ts';
import { currentEntry } from './state.ts';
import { chooseFirst, endingOfFile, formatThumbnail, isCutOut, shapeOf } from './thumbnail.ts';

export function ContactSheet() {
  const found = listing.value;
  return (
    <nav class="sheet" id="sheet" aria-label="Originals">
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
      {visibleShelves.value.map((shelf) => (
        <ShelfSection key={shelf.resource.name} shelf={shelf} />
      ))}
    </nav>
  );
}

function SheetFilter() {
  const { text, kind } = filter.value;
  const kinds = shelves.value.flatMap(({ resource, entries }) =>
    entries.length > 0 ? resource.name : [],
  );
  const isFiltered = text.trim() !== '' || kind !== '';
  const count = visibleShelves.value.reduce((sum, { entries }) => sum + entries.length, 0);
  return (
    <search class="filter">
      <input
        type="search"
        name="search"
        aria-label="Search the originals"
        placeholder="Search by name or id"
        value={text}
        onInput={({ currentTarget }) => {
          filter.value = { text: currentTarget.value, kind };
        }}
      />
      <Select
        name="only-kind"
        label="Kinds shown"
        words={['', ...kinds]}
        value={kind}
        textOf={(word) => word || 'all kinds'}
        onPick={(word) => {
          filter.value = { text, kind: word };
        }}
      />
      <p class="soft" aria-live="polite" id="found">
        {isFiltered && formatFound(count, kind)}
      </p>
    </search>
  );
}

/** Formats the number of matches, which covers only listed originals. */
function formatFound(count: number, kind: string): string {
  const isComplete = shelves.value.every(
    (shelf) => shelf.isComplete || (kind !== '' && shelf.resource.name !== kind),
  );
  const found = count === 0 ? 'No matches' : `${count.toLocaleString('en')} found`;
  return isComplete ? found : `${found} among those listed`;
}

function Emptiness({ shelves }: { readonly shelves: readonly Shelf[] }) {
  const isEmpty = shelves.every(
    ({ resource, entries }) => resource.name === 'default avatar' || entries.length === 0,
  );
  if (shelves.length === 0 || !isEmpty) return null;
  return (
    <div class="notice">
      <p>
        The storage does not contain originals yet. An avatar, for example, is a file at
        avatars/&#123;user_id&#125;/&#123;avatar_hash&#125;.
      </p>
    </div>
  );
}

function ShelfSection({ shelf: { resource, entries, isComplete } }: { readonly shelf: Shelf }) {
  const shape = shapeOf(resource.name);
  const count = entries.length.toLocaleString('en');
  return (
    <details open>
      <summary>
        <h2>{formatHeading(resource.name)}</h2>
        <span class="soft">{isComplete ? count : `${count} listed, there are more`}</span>
      </summary>
      <ul class={shape > 1 ? 'entries wide' : 'entries'} style={{ '--shape': shape }}>
        {entries.map((entry) => (
          <EntryItem key={entry.id} entry={entry} />
        ))}
      </ul>
    </details>
  );
}

/** Link to the workbench for an original. Animations have a mark, and play on hover and focus. */
function EntryItem({ entry }: { readonly entry: Entry }) {
  const { id, resource, label } = entry;
  const isCurrent = useComputed(() => currentEntry.value?.id === id).value;
  const isAnimated = useComputed(() => properties.value.get(id)?.isMoving === true).value;
  const link = useRef<HTMLAnchorElement>(null);
  const [isPointedAt, setIsPointedAt] = useState(false);
  const [isBroken, setIsBroken] = useState(false);
  useLayoutEffect(() => {
    if (isCurrent) link.current?.scrollIntoView({ block: 'nearest' });
  }, [isCurrent]);
  const name = nameOf(entry);
  const size = formatBytes(entry.sizeBytes);
  const shows = (isShown: boolean) => () => setIsPointedAt(isShown);
  return (
    <li>
      <a
        ref={link}
        href={`#${formatTarget(chooseFirst(entry, isAnimated))}`}
        aria-label={`${resource.name} ${label}, ${size}${isAnimated ? ', animated' : ''}`}
        aria-current={isCurrent ? 'true' : undefined}
        title={`${name}, ${size}`}
        onFocus={shows(true)}
        onBlur={shows(false)}
        onMouseEnter={shows(true)}
        onMouseLeave={shows(false)}
      >
        {isBroken ? (
          <span class="card" data-word="no picture" />
        ) : isPicture(entry) ? (
          <img
            class={isCutOut(entry) ? 'whole' : undefined}
            loading="lazy"
            fetchpriority="low"
            decoding="async"
            alt=""
            onLoad={() => requestProperties([entry])}
            onError={() => setIsBroken(true)}
            src={formatThumbnail(entry, isAnimated && isPointedAt && allowsMotion())}
          />
        ) : (
          <span class="card" data-word={endingOfFile(name)} />
        )}
        {isAnimated && <span class="moves" aria-hidden="true" />}
        {resource.name === 'attachment' && <span class="caption">{name}</span>}
      </a>
    </li>
  );
}

function allowsMotion(): boolean {
  return !matchMedia('(prefers-reduced-motion: reduce)').matches;
}
