import type { ComponentChildren } from 'preact';
import type { ParameterForm, QueryParameter } from '../../../contract/media-query.ts';
import { DEFAULT_AVATAR_COUNT } from '../../../contract/resources.ts';
import { hasEffect, nameOfFormat, withoutAliases } from '../effects.ts';
import { type MediaChoice, placeholdersOf } from '../media-choice.ts';
import { change, changeKind, choice, resources } from '../workbench.ts';
import { FaultNote, faultAttributes, findFaults } from './fault-note.tsx';

/** A choice of more words than these is a list that opens. */
const MOST_SEGMENTS = 6;

/** Placeholders that are no free text. */
const placeholderForms: Readonly<Record<string, ParameterForm>> = {
  index: { kind: 'integer', min: 0, max: DEFAULT_AVATAR_COUNT - 1 },
};

/** Every part of a URL as a field: what the contract's tables allow, and texts that they may not. */
export function UrlForm() {
  const chosen = choice.value;
  if (chosen === undefined) return null;
  const { resource, values, extension, parameters } = chosen;
  return (
    <form
      class="controls"
      id="controls"
      aria-label="Options"
      autocomplete="off"
      onSubmit={(event) => event.preventDefault()}
    >
      <Labelled name="kind">
        <select
          name="kind"
          value={resource.name}
          onInput={({ currentTarget }) => {
            const next = resources.value.find(({ name }) => name === currentTarget.value);
            if (next !== undefined) changeKind(next);
          }}
        >
          {resources.value.map(({ name }) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </Labelled>
      {placeholdersOf(resource).map((name) => (
        <Labelled key={`${resource.name} ${name}`} name={name}>
          <TextInput
            name={name}
            value={values[name] ?? ''}
            form={placeholderForms[name]}
            onText={(text) => change({ values: { ...values, [name]: text } }, { isTyping: true })}
          />
        </Labelled>
      ))}
      {resource.extensions.length > 0 && (
        <Segments
          name="ext"
          words={withoutAliases(resource.extensions)}
          value={nameOfFormat(extension)}
          onPick={(word) => change({ extension: word })}
        />
      )}
      {resource.parameters.map((parameter) => (
        <Parameter
          key={parameter.name}
          parameter={parameter}
          chosen={chosen}
          onChange={(value, isTyping) =>
            change({ parameters: { ...parameters, [parameter.name]: value } }, { isTyping })
          }
        />
      ))}
    </form>
  );
}

interface ParameterProps {
  readonly parameter: QueryParameter;
  readonly chosen: MediaChoice;
  readonly onChange: (value: string, isTyping: boolean) => void;
}

function Parameter({ parameter, chosen, onChange }: ParameterProps) {
  const { name, form, default: fallback } = parameter;
  const value = chosen.parameters[name] ?? fallback ?? '';
  if (form.kind === 'integer') {
    return (
      <Labelled name={name} isHalf>
        <TextInput name={name} value={value} form={form} onText={(text) => onChange(text, true)} />
      </Labelled>
    );
  }
  const listed = name === 'format' ? withoutAliases(form.values) : form.values;
  const words = fallback === undefined ? ['', ...listed] : listed;
  const isOff = (word: string): boolean => !hasEffect(chosen, name, word);
  if (words.length <= MOST_SEGMENTS) {
    const current = name === 'format' ? nameOfFormat(value) : value;
    return (
      <Segments
        name={name}
        words={words}
        value={isOff(current) ? (fallback ?? '') : current}
        isOff={isOff}
        onPick={(word) => onChange(word, false)}
      />
    );
  }
  return (
    <Labelled name={name}>
      <select
        name={name}
        value={value}
        onInput={({ currentTarget }) => onChange(currentTarget.value, false)}
        {...faultAttributes(name, findFaults(name))}
      >
        {words.map((word) => (
          <option key={word} value={word}>
            {word === fallback ? `${word} (default)` : labelOf(word)}
          </option>
        ))}
        {!words.includes(value) && <option value={value}>{value} (not listed)</option>}
      </select>
    </Labelled>
  );
}

interface TextInputProps {
  readonly name: string;
  readonly value: string;
  /** Of numbers. */
  readonly form?: ParameterForm | undefined;
  readonly onText: (text: string) => void;
}

function TextInput({ name, value, form, onText }: TextInputProps) {
  const bounds = form?.kind === 'integer' ? form : undefined;
  return (
    <input
      type={bounds === undefined ? 'text' : 'number'}
      list={undefined}
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
      {...faultAttributes(name, findFaults(name))}
    />
  );
}

interface LabelledProps {
  readonly name: string;
  readonly isHalf?: boolean;
  readonly children: ComponentChildren;
}

function Labelled({ name, isHalf = false, children }: LabelledProps) {
  return (
    <div class={isHalf ? 'field half' : 'field'}>
      {/* biome-ignore lint/a11y/noLabelWithoutControl: the control is what it is called with */}
      <label>
        <span class="name">{name}</span>
        {children}
      </label>
      <FaultNote path={name} />
    </div>
  );
}

interface SegmentsProps {
  readonly name: string;
  readonly words: readonly string[];
  readonly value: string;
  /** Whether a word changes nothing, and so cannot be chosen; the default can. */
  readonly isOff?: (word: string) => boolean;
  readonly onPick: (word: string) => void;
}

/** A choice among a few words, all of them visible; where none of them has an effect, it is off. */
function Segments({ name, words, value, isOff = () => false, onPick }: SegmentsProps) {
  const isUseless = words.every(isOff);
  return (
    <div
      class={isUseless ? 'field off' : 'field'}
      role="radiogroup"
      aria-labelledby={`${name}-name`}
      aria-disabled={isUseless ? 'true' : undefined}
      title={isUseless ? 'It changes nothing of this' : undefined}
      {...faultAttributes(name, findFaults(name))}
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

/** What a word is called; the empty one stands for no value. */
function labelOf(word: string): string {
  return word === '' ? 'none' : word;
}
