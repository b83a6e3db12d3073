import { useSignalEffect } from '@preact/signals';
import {
  askFacts,
  type Filter,
  filter,
  knownFormats,
  listing,
  needsFacts,
  unknownFrames,
  visibleShelves,
} from '../originals.ts';

interface ChoiceProps {
  readonly name: string;
  readonly label: string;
  /** What is chosen where none of the names is. */
  readonly all: string;
  readonly names: readonly string[];
  readonly value: string;
  /** With the empty text for all of them. */
  readonly onPick: (name: string) => void;
}

/** One of several names, or all of them. */
function Choice({ name, label, all, names, value, onPick }: ChoiceProps) {
  return (
    <select
      name={name}
      aria-label={label}
      value={value}
      onInput={({ currentTarget }) => onPick(currentTarget.value)}
    >
      <option value="">{all}</option>
      {names.map((each) => (
        <option key={each} value={each}>
          {each}
        </option>
      ))}
    </select>
  );
}

/** What the sheet is searched by. */
export function SheetFilter() {
  // What is asked for cannot be told from the list: all that may fit are looked at.
  useSignalEffect(() => {
    if (needsFacts.value) {
      askFacts(
        unknownFrames.value.map(({ resource, original: { values } }) => ({ resource, values })),
      );
    }
  });
  const { text, kind, format, isMoving } = filter.value;
  const kinds =
    listing.value.kind === 'shelves'
      ? listing.value.shelves.filter(({ frames }) => frames.length > 0)
      : [];
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
        <Choice
          name="only-kind"
          label="Kinds shown"
          all="all kinds"
          names={kinds.map(({ resource }) => resource.name)}
          value={kind}
          onPick={(name) => set({ kind: name })}
        />
        <Choice
          name="only-format"
          label="Formats shown"
          all="all formats"
          names={knownFormats.value}
          value={format}
          onPick={(name) => set({ format: name })}
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

/** How many there are, where they are not all; and how many have to be looked at yet. */
function describeFound(): string {
  const { text, kind } = filter.value;
  if (text.trim() === '' && kind === '' && !needsFacts.value) return '';
  const count = visibleShelves.value.reduce((sum, { frames }) => sum + frames.length, 0);
  const left = needsFacts.value ? unknownFrames.value.length : 0;
  const found = count === 0 ? 'None found' : `${count.toLocaleString('en')} found`;
  return left === 0 ? found : `${found}, ${left.toLocaleString('en')} to look at`;
}
