import { signal } from '@preact/signals';
import { ASSET_WIDTHS_PX } from '../../../contract/media-query.ts';
import { send } from '../exchange.ts';
import { formatBytes } from '../labels.ts';
import { formatTarget, type MediaChoice, widthParameterOf, withWidth } from '../media-choice.ts';
import { choice, isPictureShown } from '../state.ts';
import { change } from '../workbench.ts';

/** Low, because the service has other clients. */
const MAX_CONCURRENT = 2;

const widths = ASSET_WIDTHS_PX.map(String);

/** Widths with a label below the chart: powers of two. */
const labelled = widths.filter((width) => Number.isInteger(Math.log2(Number(width))));
const landmarks = [labelled[0], labelled[labelled.length >> 1], labelled.at(-1)];

interface Measurement {
  readonly sizeBytes: number;
  /** Width of the result, at maxBytes that of the original. */
  readonly widthPx: number;
}

/** Measurements by target, without failed requests, which are retried. */
const measured = signal<ReadonlyMap<string, Measurement>>(new Map());
const measuring = signal<MediaChoice>();

/** Chart of the bytes at every width. Its bars select a width. */
export function SizeLadder() {
  const chosen = choice.value;
  const parameter = chosen && widthParameterOf(chosen.resource);
  if (chosen === undefined || parameter === undefined || !isPictureShown.value) return null;
  const found = widths.map((width) => measured.value.get(formatTarget(withWidth(chosen, width))));
  const results = found.flatMap((each) => each ?? []);
  const maxBytes = Math.max(1, ...results.map(({ sizeBytes }) => sizeBytes));
  const current = chosen.parameters[parameter.name] || parameter.default;
  const doubled = widths.find((width) => Number(width) >= 2 * Number(current));
  const isComplete = results.length === widths.length;
  return (
    <section id="ladder-section" aria-labelledby="ladder-title">
      <div class="heading">
        <h3 id="ladder-title">Size ladder</h3>
        <p class="soft" id="ladder-note">
          {isComplete
            ? describe(results)
            : results.length > 0
              ? `${results.length} of ${widths.length}`
              : 'File size at every width, in this format and quality'}
        </p>
        {!isComplete && (
          <button
            type="button"
            id="measure"
            disabled={measuring.value !== undefined}
            onClick={() => measure(chosen)}
          >
            Measure all widths
          </button>
        )}
      </div>
      <fieldset
        class={results.length === 0 ? 'ladder is-empty' : 'ladder'}
        id="ladder"
        aria-labelledby="ladder-title"
      >
        <div class="bars">
          {widths.map((width, index) => (
            <Rung
              key={width}
              width={width}
              measurement={found[index]}
              maxBytes={maxBytes}
              isCurrent={width === current}
              isDouble={width === doubled}
              onPick={() => change(withWidth(chosen, width))}
            />
          ))}
        </div>
      </fieldset>
    </section>
  );
}

interface RungProps {
  readonly width: string;
  readonly measurement: Measurement | undefined;
  readonly maxBytes: number;
  readonly isCurrent: boolean;
  /** Whether the width is twice the current one. */
  readonly isDouble: boolean;
  readonly onPick: () => void;
}

function Rung({ width, measurement, maxBytes, isCurrent, isDouble, onPick }: RungProps) {
  const { sizeBytes = 0, widthPx = Number(width) } = measurement ?? {};
  const isOriginal = widthPx < Number(width);
  const weight = measurement === undefined ? '' : formatBytes(sizeBytes);
  const note = isOriginal ? `, ${widthPx} px wide: never enlarged` : '';
  const name = isDouble ? `${width} px (2×)` : `${width} px`;
  const title = weight === '' ? name : `${name}: ${weight}${note}`;
  const classes = [
    'rung',
    labelled.includes(width) && 'named',
    landmarks.includes(width) && 'landmark',
    isOriginal && 'is-original',
  ];
  return (
    <label
      class={classes.filter(Boolean).join(' ')}
      style={{ '--part': sizeBytes / maxBytes }}
      title={title}
    >
      <input
        type="radio"
        name="ladder"
        value={width}
        checked={isCurrent}
        aria-label={title}
        onChange={onPick}
      />
      <span class="weight">{weight}</span>
      {isDouble && <span class="double">2×</span>}
      <span class="fill" />
      <span class="width">{width}</span>
    </label>
  );
}

async function measure(chosen: MediaChoice): Promise<void> {
  measuring.value = chosen;
  // Small widths first, since they are fast.
  const waiting = [...widths].reverse();
  const work = async (): Promise<void> => {
    for (let width = waiting.pop(); width !== undefined; width = waiting.pop()) {
      const target = formatTarget(withWidth(chosen, width));
      if (choice.value !== chosen) return;
      if (measured.value.has(target)) continue;
      const exchange = await send(target).catch(() => undefined);
      if (exchange === undefined) return;
      const { body, sizeBytes } = exchange;
      if (body.kind !== 'picture') continue;
      measured.value = new Map(measured.value).set(target, { sizeBytes, widthPx: body.width });
    }
  };
  await Promise.all(Array.from({ length: MAX_CONCURRENT }, work));
  measuring.value = undefined;
}

function describe(results: readonly Measurement[]): string {
  const [first, last] = [results.at(0), results.at(-1)];
  if (first === undefined || last === undefined) return '';
  return `${formatBytes(first.sizeBytes)} to ${formatBytes(last.sizeBytes)}: the original is ${last.widthPx} px wide and never enlarged`;
}
