import type { QueryParameter } from '../../contract/media-query.ts';
import type { DescribedResource } from '../explorer-data.ts';
import { create } from './element.ts';
import { type MediaChoice, placeholdersOf } from './media-choice.ts';

/** A choice of more words than these is a list that opens. */
const MOST_SEGMENTS = 6;

interface UrlFormParts {
  readonly root: HTMLFormElement;
  readonly resources: readonly DescribedResource[];
  /** Called with what was chosen; `isTyping` while it is being typed, and may be unfinished. */
  readonly onChange: (choice: MediaChoice, isTyping: boolean) => void;
}

/** Every part of a URL as a field: what the contract's tables allow, and texts that they may not. */
export class UrlForm {
  readonly #parts: UrlFormParts;
  readonly #kind = create('select');
  readonly #fields = create('div', 'fields');
  #resource: DescribedResource | undefined;

  constructor(parts: UrlFormParts) {
    this.#parts = parts;
    const { root, resources } = parts;
    this.#kind.append(...resources.map(({ name }) => new Option(name, name)));
    this.#kind.name = 'kind';
    root.replaceChildren(field('kind', this.#kind), this.#fields);
    root.addEventListener('submit', (event) => event.preventDefault());
    root.addEventListener('input', ({ target }) => {
      if (target === this.#kind) this.#changeKind();
      const isTyping = target instanceof HTMLInputElement && target.type === 'text';
      const choice = this.#read();
      if (choice !== undefined) parts.onChange(choice, isTyping);
    });
  }

  /** Shows a choice; a field that is being typed in keeps what it has. */
  show({ resource, values, extension, parameters }: MediaChoice): void {
    if (resource !== this.#resource) this.#build(resource);
    this.#kind.value = resource.name;
    const controls = [...this.#parts.root.elements].filter(
      (each) => each instanceof HTMLInputElement || each instanceof HTMLSelectElement,
    );
    const set = (name: string, value: string): void => {
      for (const control of controls.filter((each) => each.name === name)) {
        if (control.type === 'radio' && control instanceof HTMLInputElement) {
          control.checked = control.value === value;
        } else if (control !== document.activeElement) {
          control.value = value;
        }
      }
    };
    for (const [name, value] of Object.entries(values)) set(name, value);
    if (resource.extensions.length > 0) set('ext', extension);
    for (const { name, default: fallback = '' } of resource.parameters) {
      set(name, parameters[name] ?? fallback);
    }
  }

  #changeKind(): void {
    const resource = this.#parts.resources.find(({ name }) => name === this.#kind.value);
    if (resource === undefined) return;
    const before = this.#read();
    const { extension = '', values = {}, parameters = {} } = before ?? {};
    const [first = ''] = resource.extensions;
    this.show({
      resource,
      values: Object.fromEntries(
        placeholdersOf(resource).map((name) => [name, values[name] ?? '']),
      ),
      extension: resource.extensions.some((each) => each === extension) ? extension : first,
      parameters,
    });
  }

  #build(resource: DescribedResource): void {
    this.#resource = resource;
    const { extensions, parameters } = resource;
    this.#fields.replaceChildren(
      ...placeholdersOf(resource).map((name) => field(name, textInput(name))),
      ...(extensions.length === 0 ? [] : [segments('ext', extensions)]),
      ...parameters.map(createParameter),
    );
  }

  #read(): MediaChoice | undefined {
    const resource = this.#resource;
    if (resource === undefined) return undefined;
    const data = new FormData(this.#parts.root);
    const textOf = (name: string): string => String(data.get(name) ?? '');
    const read = (names: readonly string[]) =>
      Object.fromEntries(names.map((name) => [name, textOf(name)]));
    return {
      resource,
      values: read(placeholdersOf(resource)),
      extension: textOf('ext'),
      parameters: read(resource.parameters.map(({ name }) => name)),
    };
  }
}

function createParameter({ name, form, default: fallback }: QueryParameter): HTMLElement {
  if (form.kind === 'integer') {
    const input = textInput(name);
    input.inputMode = 'numeric';
    input.placeholder = `${form.min} to ${form.max}`;
    const label = field(name, input);
    label.classList.add('half');
    return label;
  }
  const words = fallback === undefined ? ['', ...form.values] : form.values;
  if (words.length <= MOST_SEGMENTS) return segments(name, words);
  const select = create('select');
  select.name = name;
  select.append(
    ...words.map(
      (word) => new Option(word === fallback ? `${word} (default)` : labelOf(word), word),
    ),
  );
  return field(name, select);
}

function textInput(name: string): HTMLInputElement {
  const input = create('input');
  input.type = 'text';
  input.name = name;
  input.spellcheck = false;
  input.autocapitalize = 'off';
  return input;
}

function field(name: string, control: HTMLElement): HTMLLabelElement {
  return create('label', 'field', create('span', 'name', name), control);
}

/** What a word is called; the empty one stands for no value. */
function labelOf(word: string): string {
  return word === '' ? 'none' : word;
}

/** A choice among a few words, all of them visible. */
function segments(name: string, words: readonly string[]): HTMLFieldSetElement {
  const labels = words.map((word) => {
    const input = create('input');
    input.type = 'radio';
    input.name = name;
    input.value = word;
    return create('label', '', input, create('span', '', labelOf(word)));
  });
  const legend = create('legend', 'name', name);
  return create('fieldset', 'field', legend, create('div', 'segments', ...labels));
}
