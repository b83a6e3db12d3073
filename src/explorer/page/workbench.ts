import { computed, signal } from '@preact/signals';
import type { ContractTables, DescribedResource } from '../explorer-data.ts';
import { ask, type Exchange } from './exchange.ts';
import {
  findTarget,
  formatPath,
  formatTarget,
  identify,
  type MediaChoice,
  placeholdersOf,
  readTarget,
} from './media-choice.ts';
import { askFacts, facts, findFirst, framesById, messageOf } from './originals.ts';
import { chooseFirst } from './thumbnail.ts';

/** A text is asked for when so long nothing was typed, in milliseconds. */
const TYPING_MS = 300;

/** The place of the page where the sheet fills a narrow screen. */
const SHEET_HASH = '#sheet';

/** What is on the stage. */
export type Outcome =
  | { readonly kind: 'nothing' }
  /** With the picture as a blob: what is shown is what was weighed. */
  | { readonly kind: 'exchange'; readonly exchange: Exchange; readonly pictureUrl?: string }
  | { readonly kind: 'failure'; readonly message: string };

/** Something that is wrong with a part of a URL, as the API says it. */
export interface Fault {
  readonly path: string;
  readonly message: string;
}

export const contract = signal<ContractTables>({ resources: [], external: [], signs: [] });
/** All kinds that a URL may be of, signed ones too. */
export const resources = computed(() => [...contract.value.resources, ...contract.value.external]);
export const choice = signal<MediaChoice>();
/** The text in the URL line, as long as it is what a person has put there. */
export const typedUrl = signal<string>();
/** Path and query that are asked for: to the letter what was put, until a control is changed. */
export const target = signal<string>();
export const outcome = signal<Outcome>({ kind: 'nothing' });
export const isWaiting = signal(false);
export const view = signal<'sheet' | 'bench'>('sheet');

/** Whether nothing names an original yet, so that there is nothing to ask for. */
export const isBlank = computed(() => {
  const values = Object.values(choice.value?.values ?? {});
  return values.every((value) => value === '');
});

/** The frame of the choice on the sheet, if it is there. */
export const currentFrame = computed(() =>
  choice.value === undefined ? undefined : framesById.value.get(identify(choice.value)),
);

/** What is known of the original of the choice. */
export const currentFacts = computed(() =>
  choice.value === undefined ? undefined : facts.value.get(identify(choice.value)),
);

/** What the response says is wrong; `url` stands for what no field is to blame for. */
export const faults = computed((): readonly Fault[] => {
  if (typedUrl.value !== undefined && target.value === undefined) {
    return [
      { path: 'url', message: 'Expected a URL of the contract, such as /avatars/1/ab12.webp.' },
    ];
  }
  if (outcome.value.kind !== 'exchange') return [];
  const { body } = outcome.value.exchange;
  if (body.kind !== 'error') return [];
  if (body.errors.length > 0) return body.errors;
  return [{ path: 'url', message: `${body.code}: ${body.message}` }];
});

let asked = 0;
let timer = 0;

interface Showing {
  /** While a text is being typed, which may be unfinished. */
  readonly isTyping?: boolean;
  /** What was put in the URL line, and the target in it. */
  readonly typed?: { readonly text: string; readonly target: string };
}

/** Puts a choice on the workbench, and asks for it. */
export function show(chosen: MediaChoice, { isTyping = false, typed }: Showing = {}): void {
  choice.value = chosen;
  typedUrl.value = typed?.text;
  target.value = typed?.target ?? formatTarget(chosen);
  history.replaceState(null, '', `#${target.value}`);
  clearTimeout(timer);
  asked += 1;
  if (isBlank.value) {
    present({ kind: 'nothing' });
    return;
  }
  askFacts([chosen]);
  isWaiting.value = true;
  const turn = asked;
  timer = window.setTimeout(() => request(turn), isTyping ? TYPING_MS : 0);
}

/** Asks once more for what is on the workbench. */
export function askAgain(): void {
  if (choice.value === undefined || isBlank.value) return;
  asked += 1;
  isWaiting.value = true;
  void request(asked);
}

/** Takes what was put in the URL line; the controls follow as far as it can be read. */
export function putUrl(text: string): void {
  const found = findTarget(text, resources.value);
  const chosen = found === undefined ? undefined : readTarget(found, resources.value);
  if (found !== undefined && chosen !== undefined) {
    show(chosen, { isTyping: true, typed: { text, target: found } });
    return;
  }
  clearTimeout(timer);
  asked += 1;
  typedUrl.value = text;
  target.value = undefined;
  present({ kind: 'nothing' });
}

/** Goes to the first original of another kind; where the list has none, to empty fields. */
export function changeKind(resource: DescribedResource): void {
  const first = findFirst(resource);
  if (first !== undefined) {
    show(chooseFirst(resource, first.original, facts.value.get(first.id)?.isMoving));
    return;
  }
  const values = Object.fromEntries(placeholdersOf(resource).map((name) => [name, '']));
  const { extensions } = resource;
  const extension = extensions.includes('webp') ? 'webp' : (extensions[0] ?? '');
  show({ resource, values, extension, parameters: {} });
}

/** Changes a part of the choice. A signature holds for its path alone. */
export function change(part: Partial<MediaChoice>, options?: Showing): void {
  if (choice.value === undefined) return;
  const changed = { ...choice.value, ...part };
  const isSigned = formatPath(changed) === formatPath(choice.value);
  show(isSigned ? changed : { ...changed, signature: undefined }, options);
}

/** Shows what the address of the page names. */
export function follow(): void {
  const named = location.hash.slice(1);
  const found = named.startsWith('/') ? readTarget(named, resources.value) : undefined;
  view.value = found === undefined ? 'sheet' : 'bench';
  if (found !== undefined) {
    show(found);
    return;
  }
  if (choice.value !== undefined) return;
  const [first] = framesById.value.values();
  if (first === undefined) return;
  show(chooseFirst(first.resource, first.original));
  // It was not picked by hand: on a narrow screen, the sheet stays.
  history.replaceState(null, '', SHEET_HASH);
}

/** @param turn that of the choice: the response to an earlier one is not shown */
async function request(turn: number): Promise<void> {
  try {
    const exchange = await ask(target.value ?? '');
    if (turn !== asked) return;
    const { body } = exchange;
    if (body.kind !== 'picture') {
      present({ kind: 'exchange', exchange });
      return;
    }
    const pictureUrl = URL.createObjectURL(body.blob);
    const picture = new Image();
    picture.alt = `${body.width} × ${body.height} pixels`;
    picture.src = pictureUrl;
    await picture.decode().catch(() => undefined);
    if (turn === asked) present({ kind: 'exchange', exchange, pictureUrl });
    else URL.revokeObjectURL(pictureUrl);
  } catch (error) {
    if (turn === asked) present({ kind: 'failure', message: messageOf(error) });
  }
}

function present(next: Outcome): void {
  const before = outcome.value;
  outcome.value = next;
  isWaiting.value = false;
  if (before.kind === 'exchange' && before.pictureUrl !== undefined) {
    URL.revokeObjectURL(before.pictureUrl);
  }
}
