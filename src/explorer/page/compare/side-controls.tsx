import { ASSET_WIDTHS_PX } from '../../../contract/media-query.ts';
import { withoutAliases } from '../effects.ts';
import type { MediaChoice } from '../media-choice.ts';

/** What a side of the comparison has of its own; what is absent is as it is above. */
export interface SideChoice {
  readonly quality: string;
  readonly format?: string | undefined;
  readonly size?: string | undefined;
}

interface SideControlsProps {
  readonly name: 'left' | 'right';
  readonly chosen: MediaChoice;
  readonly side: SideChoice;
  readonly onChange: (side: SideChoice) => void;
}

/** Chooses format, size and quality of one side. */
export function SideControls({ name, chosen, side, onChange }: SideControlsProps) {
  const { extensions, parameters } = chosen.resource;
  const wordsOf = (wanted: string): readonly string[] =>
    parameters.flatMap((each) =>
      each.name === wanted && each.form.kind === 'choice' ? each.form.values : [],
    );
  const formats = withoutAliases(extensions.length > 0 ? extensions : wordsOf('format'));
  return (
    <div class="side">
      <Pick
        label={`Format on the ${name}`}
        words={formats}
        none="format as above"
        value={side.format}
        onPick={(format) => onChange({ ...side, format })}
      />
      <Pick
        label={`Size on the ${name}`}
        words={ASSET_WIDTHS_PX.map(String)}
        none="size as above"
        value={side.size}
        onPick={(size) => onChange({ ...side, size })}
      />
      <Pick
        label={`Quality on the ${name}`}
        words={wordsOf('quality')}
        value={side.quality}
        onPick={(quality = side.quality) => onChange({ ...side, quality })}
      />
    </div>
  );
}

interface PickProps {
  readonly label: string;
  readonly words: readonly string[];
  /** What it is called to have no value; absent where it must have one. */
  readonly none?: string;
  readonly value: string | undefined;
  readonly onPick: (word: string | undefined) => void;
}

function Pick({ label, words, none, value, onPick }: PickProps) {
  return (
    <select
      aria-label={label}
      value={value ?? ''}
      onChange={({ currentTarget }) => onPick(currentTarget.value || undefined)}
    >
      {none !== undefined && <option value="">{none}</option>}
      {words.map((word) => (
        <option key={word} value={word}>
          {word}
        </option>
      ))}
    </select>
  );
}
