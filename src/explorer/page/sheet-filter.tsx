import { Select } from './fields.tsx';
import { filter, shelves, visibleShelves } from './originals.ts';

export function SheetFilter() {
  const { text, kind } = filter.value;
  const kinds = shelves.value.flatMap(({ resource, frames }) =>
    frames.length > 0 ? resource.name : [],
  );
  const isFiltered = text.trim() !== '' || kind !== '';
  const count = visibleShelves.value.reduce((sum, { frames }) => sum + frames.length, 0);
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
        {isFiltered && (count === 0 ? 'None found' : `${count.toLocaleString('en')} found`)}
      </p>
    </search>
  );
}
