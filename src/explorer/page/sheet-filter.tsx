import { useSignalEffect } from '@preact/signals';
import { Select } from './fields.tsx';
import {
  askFacts,
  type Filter,
  filter,
  knownFormats,
  needsFacts,
  shelves,
  unknownFrames,
  visibleShelves,
} from './originals.ts';

export function SheetFilter() {
  // The list alone cannot answer this: the facts of all candidates are requested.
  useSignalEffect(() => {
    if (needsFacts.value) askFacts(unknownFrames.value);
  });
  const { text, kind, format, isMoving } = filter.value;
  const kinds = shelves.value.flatMap(({ resource, frames }) =>
    frames.length > 0 ? resource.name : [],
  );
  const set = (part: Partial<Filter>): void => {
    filter.value = { ...filter.value, ...part };
  };
  return (
    <search class="filter">
      <input
        type="search"
        name="search"
        aria-label="Search the originals"
        placeholder="Search by name or id"
        value={text}
        onInput={({ currentTarget }) => set({ text: currentTarget.value })}
      />
      <div class="filters">
        <Select
          name="only-kind"
          label="Kinds shown"
          words={['', ...kinds]}
          value={kind}
          textOf={(word) => word || 'all kinds'}
          onPick={(word) => set({ kind: word })}
        />
        <Select
          name="only-format"
          label="Formats shown"
          words={['', ...knownFormats.value]}
          value={format}
          textOf={(word) => word || 'all formats'}
          onPick={(word) => set({ format: word })}
        />
        <label class="check">
          <input
            type="checkbox"
            name="only-moving"
            checked={isMoving}
            onChange={({ currentTarget }) => set({ isMoving: currentTarget.checked })}
          />
          moving
        </label>
      </div>
      <p class="soft" aria-live="polite" id="found">
        {describeFound()}
      </p>
    </search>
  );
}

/** Describes the number of matches, and of originals still to be checked. */
function describeFound(): string {
  const { text, kind } = filter.value;
  if (text.trim() === '' && kind === '' && !needsFacts.value) return '';
  const count = visibleShelves.value.reduce((sum, { frames }) => sum + frames.length, 0);
  const left = needsFacts.value ? unknownFrames.value.length : 0;
  const found = count === 0 ? 'None found' : `${count.toLocaleString('en')} found`;
  return left === 0 ? found : `${found}, ${left.toLocaleString('en')} to look at`;
}
