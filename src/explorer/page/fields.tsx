import type { ComponentChildren } from 'preact';
import type { ParameterSyntax } from '../../contract/media-query.ts';
import { faults, isWaiting } from './state.ts';

export function faultAttributes(path: string) {
  return findFault(path) === undefined
    ? {}
    : ({ 'aria-invalid': 'true', 'aria-describedby': `${path}-fault` } as const);
}

export function FaultNote({ path }: { readonly path: string }) {
  const fault = findFault(path);
  if (fault === undefined) return null;
  return (
    <p class="fault-note" id={`${path}-fault`}>
      {fault}
    </p>
  );
}

/** Returns the validation error of a field; `undefined` while a request is pending. */
function findFault(path: string): string | undefined {
  const found = isWaiting.value ? [] : faults.value.filter((fault) => fault.path === path);
  return found.length === 0 ? undefined : found.map(({ message }) => message).join(' ');
}

const idOf = (name: string): string => `field-${name}`;

interface LabelledProps {
  readonly name: string;
  readonly isHalf?: boolean;
  readonly children: ComponentChildren;
}

export function Labelled({ name, isHalf = false, children }: LabelledProps) {
  return (
    <div class={isHalf ? 'field half' : 'field'}>
      <label htmlFor={idOf(name)}>
        <span class="name">{name}</span>
        {children}
      </label>
      <FaultNote path={name} />
    </div>
  );
}

interface TextFieldProps {
  readonly name: string;
  readonly isHalf?: boolean;
  readonly value: string;
  readonly form?: ParameterSyntax | undefined;
  readonly onText: (text: string) => void;
}

export function TextField({ name, isHalf = false, value, form, onText }: TextFieldProps) {
  const bounds = form?.kind === 'integer' ? form : undefined;
  return (
    <Labelled name={name} isHalf={isHalf}>
      <input
        type={bounds === undefined ? 'text' : 'number'}
        id={idOf(name)}
        list={undefined} // required by the types even without suggestions
        name={name}
        value={value}
        spellcheck={false}
        autocapitalize="off"
        autocomplete="off"
        {...(bounds && {
          min: bounds.min,
          max: bounds.max,
          step: 1,
          placeholder: `${bounds.min} to ${bounds.max}`,
        })}
        onInput={({ currentTarget }) => onText(currentTarget.value)}
        {...faultAttributes(name)}
      />
    </Labelled>
  );
}

interface SelectProps {
  readonly name?: string;
  readonly label?: string;
  readonly words: readonly string[];
  readonly value: string;
  readonly textOf?: (word: string) => string;
  readonly onPick: (word: string) => void;
}

export function Select({ name, label, words, value, textOf = labelOf, onPick }: SelectProps) {
  return (
    <select
      name={name}
      id={name && idOf(name)}
      aria-label={label}
      value={value}
      onInput={({ currentTarget }) => onPick(currentTarget.value)}
      {...(name !== undefined && faultAttributes(name))}
    >
      {words.map((word) => (
        <option key={word} value={word}>
          {textOf(word)}
        </option>
      ))}
    </select>
  );
}

interface SegmentsProps {
  readonly name: string;
  readonly words: readonly string[];
  readonly value: string;
  /** Whether a word has no effect, which disables it. */
  readonly isOff?: (word: string) => boolean;
  readonly onPick: (word: string) => void;
}

/** Radio group of a few visible words; disabled if no word has an effect. */
export function Segments({ name, words, value, isOff = () => false, onPick }: SegmentsProps) {
  const isUseless = words.every(isOff);
  return (
    <div
      class="field"
      role="radiogroup"
      aria-labelledby={`${name}-name`}
      aria-disabled={isUseless ? 'true' : undefined}
      title={isUseless ? 'Has no effect here' : undefined}
      {...faultAttributes(name)}
    >
      <span class="name" id={`${name}-name`}>
        {name}
      </span>
      <div class="segments">
        {words.map((word) => (
          <label
            key={word}
            title={!isUseless && isOff(word) ? 'The same as the default' : undefined}
          >
            <input
              type="radio"
              name={name}
              value={word}
              checked={word === value}
              disabled={isOff(word)}
              onChange={() => onPick(word)}
            />
            <span>{labelOf(word)}</span>
          </label>
        ))}
      </div>
      <FaultNote path={name} />
    </div>
  );
}

export function labelOf(word: string): string {
  return word === '' ? 'none' : word;
}
