import type { ParameterSyntax, QueryParameter } from '../../../contract/media-query.ts';
import { DEFAULT_AVATAR_COUNT } from '../../../contract/resources.ts';
import { hasEffect, nameOfFormat, withoutAliases } from '../effects.ts';
import { Labelled, labelOf, Segments, Select, TextField } from '../fields.tsx';
import { type MediaChoice, placeholdersOf } from '../media-choice.ts';
import { choice, resources } from '../state.ts';
import { change, changeKind } from '../workbench.ts';

/** Maximum number of words in a radio group; more become a dropdown list. */
const MAX_SEGMENTS = 6;

/** Placeholders that are not free text. */
const placeholderSyntaxes: Readonly<Record<string, ParameterSyntax>> = {
  index: { kind: 'integer', min: 0, max: DEFAULT_AVATAR_COUNT - 1 },
};

/** Form with a field for each part of a URL. Free text may be invalid, to show the resulting error. */
export function UrlForm() {
  const chosen = choice.value;
  if (chosen === undefined) return null;
  const { resource, values, extension } = chosen;
  return (
    <form
      class="controls"
      id="controls"
      aria-label="Options"
      autocomplete="off"
      onSubmit={(event) => event.preventDefault()}
    >
      <Labelled name="kind">
        <Select
          name="kind"
          words={resources.value.map(({ name }) => name)}
          value={resource.name}
          onPick={(word) => {
            const next = resources.value.find(({ name }) => name === word);
            if (next !== undefined) changeKind(next);
          }}
        />
      </Labelled>
      {placeholdersOf(resource).map((name) => (
        <TextField
          key={`${resource.name} ${name}`}
          name={name}
          value={values[name] ?? ''}
          form={placeholderSyntaxes[name]}
          onText={(text) => change({ values: { ...values, [name]: text } }, { isTyping: true })}
        />
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
        <Parameter key={parameter.name} parameter={parameter} chosen={chosen} />
      ))}
    </form>
  );
}

interface ParameterProps {
  readonly parameter: QueryParameter;
  readonly chosen: MediaChoice;
}

function Parameter({ parameter, chosen }: ParameterProps) {
  const { name, form, default: fallback } = parameter;
  const value = chosen.parameters[name] ?? fallback ?? '';
  const set = (next: string, isTyping = false): void =>
    change({ parameters: { ...chosen.parameters, [name]: next } }, { isTyping });
  if (form.kind === 'integer') {
    const onText = (text: string): void => set(text, true);
    return <TextField name={name} isHalf value={value} form={form} onText={onText} />;
  }
  const listed = name === 'format' ? withoutAliases(form.values) : form.values;
  const words = fallback === undefined ? ['', ...listed] : listed;
  const isOff = (word: string): boolean => !hasEffect(chosen, name, word);
  if (words.length <= MAX_SEGMENTS) {
    const current = name === 'format' ? nameOfFormat(value) : value;
    return (
      <Segments
        name={name}
        words={words}
        value={isOff(current) ? (fallback ?? '') : current}
        isOff={isOff}
        onPick={set}
      />
    );
  }
  const textOf = (word: string): string => {
    if (!words.includes(word)) return `${word} (not listed)`;
    return word === fallback ? `${word} (default)` : labelOf(word);
  };
  return (
    <Labelled name={name}>
      <Select
        name={name}
        words={words.includes(value) ? words : [...words, value]}
        value={value}
        textOf={textOf}
        onPick={set}
      />
    </Labelled>
  );
}
