import { ASSET_WIDTHS_PX } from '../../../contract/media-query.ts';
import { withoutAliases } from '../effects.ts';
import { Select } from '../fields.tsx';
import { type MediaChoice, wordsOf } from '../media-choice.ts';

/** Settings of a side of the comparison; the empty text keeps the setting of the main choice. */
export interface SideChoice {
  readonly quality: string;
  readonly format: string;
  readonly size: string;
}

interface SideControlsProps {
  readonly name: 'left' | 'right';
  readonly chosen: MediaChoice;
  readonly side: SideChoice;
  readonly onChange: (side: SideChoice) => void;
}

/** Selects format, size and quality of one side. */
export function SideControls({ name, chosen, side, onChange }: SideControlsProps) {
  const { resource } = chosen;
  const { extensions } = resource;
  const formats = withoutAliases(extensions.length > 0 ? extensions : wordsOf(resource, 'format'));
  return (
    <div class="side">
      <Select
        label={`Format on the ${name}`}
        words={['', ...formats]}
        value={side.format}
        textOf={(word) => word || 'format as above'}
        onPick={(format) => onChange({ ...side, format })}
      />
      <Select
        label={`Size on the ${name}`}
        words={['', ...ASSET_WIDTHS_PX.map(String)]}
        value={side.size}
        textOf={(word) => word || 'size as above'}
        onPick={(size) => onChange({ ...side, size })}
      />
      <Select
        label={`Quality on the ${name}`}
        words={wordsOf(resource, 'quality')}
        value={side.quality}
        onPick={(quality) => onChange({ ...side, quality })}
      />
    </div>
  );
}
