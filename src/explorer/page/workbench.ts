import type { DescribedResource } from '../explorer-data.ts';
import { send } from './exchange.ts';
import {
  findTarget,
  formatPath,
  formatTarget,
  identify,
  type MediaChoice,
  parseChoice,
  placeholdersOf,
  usualExtensionOf,
} from './media-choice.ts';
import { entriesById, findFirst, properties, requestProperties, toError } from './originals.ts';
import {
  choice,
  isBlank,
  isWaiting,
  type Outcome,
  outcome,
  resources,
  target,
  typedUrl,
  view,
} from './state.ts';
import { chooseFirst } from './thumbnail.ts';

const TYPING_MS = 300;

/** Fragment of the sheet, which fills a narrow screen. */
const SHEET_HASH = '#sheet';

let latestRequest = 0;
let timer = 0;

interface ShowOptions {
  /** Whether to wait for further input. */
  readonly isTyping?: boolean;
  /** Input of the URL field, and the target in it. */
  readonly typed?: { readonly text: string; readonly target: string };
}

function show(chosen: MediaChoice, { isTyping = false, typed }: ShowOptions = {}): void {
  choice.value = chosen;
  typedUrl.value = typed?.text;
  target.value = typed?.target ?? formatTarget(chosen);
  history.replaceState(null, '', `#${target.value}`);
  const id = invalidateRequests();
  if (isBlank.value) {
    showOutcome({ kind: 'nothing' });
    return;
  }
  requestProperties([chosen]);
  isWaiting.value = true;
  timer = window.setTimeout(() => request(id), isTyping ? TYPING_MS : 0);
}

export function fetchAgain(): void {
  if (choice.value === undefined || isBlank.value) return;
  const id = invalidateRequests();
  isWaiting.value = true;
  void request(id);
}

/** Handles input of the URL field, and updates the controls if it can be parsed. */
export function setUrl(text: string): void {
  const found = findTarget(text, resources.value);
  const chosen = found === undefined ? undefined : parseChoice(found, resources.value);
  if (found !== undefined && chosen !== undefined) {
    show(chosen, { isTyping: true, typed: { text, target: found } });
    return;
  }
  invalidateRequests();
  typedUrl.value = text;
  target.value = undefined;
  showOutcome({ kind: 'nothing' });
}

/** Invalidates earlier requests, whose responses are then ignored. */
function invalidateRequests(): number {
  clearTimeout(timer);
  latestRequest += 1;
  return latestRequest;
}

/** Shows the first original of another kind, or empty fields without one. */
export function changeKind(resource: DescribedResource): void {
  const first = findFirst(resource);
  if (first !== undefined) {
    show(chooseFirst(first, properties.value.get(first.id)?.isMoving));
    return;
  }
  const values = Object.fromEntries(placeholdersOf(resource).map((name) => [name, '']));
  show({ resource, values, extension: usualExtensionOf(resource), parameters: {} });
}

/** Changes a part of the choice. Another path gets its signature from the list, if listed. */
export function change(part: Partial<MediaChoice>, options?: ShowOptions): void {
  if (choice.value === undefined) return;
  const changed = { ...choice.value, ...part };
  const isSamePath = formatPath(changed) === formatPath(choice.value);
  const { signature } = (isSamePath ? changed : entriesById.value.get(identify(changed))) ?? {};
  show({ ...changed, signature }, options);
}

/** Shows the choice in the page's address, or else the first original. */
export function syncFromAddress(): void {
  const isSheet = location.hash === SHEET_HASH;
  const named = location.hash.slice(1);
  const found = named.startsWith('/') ? parseChoice(named, resources.value) : undefined;
  if (found !== undefined) {
    show(found);
  } else if (choice.value === undefined) {
    const [first] = entriesById.value.values();
    if (first !== undefined) show(chooseFirst(first));
    if (isSheet) history.replaceState(null, '', SHEET_HASH);
  }
  view.value = isSheet || choice.value === undefined ? 'sheet' : 'bench';
}

/** @param id of the request; responses to earlier ones are ignored */
async function request(id: number): Promise<void> {
  try {
    const exchange = await send(target.value ?? '');
    if (id !== latestRequest) return;
    const { body } = exchange;
    if (body.kind !== 'picture') {
      showOutcome({ kind: 'exchange', exchange });
      return;
    }
    const pictureUrl = URL.createObjectURL(body.blob);
    const picture = new Image();
    picture.alt = `${body.width} × ${body.height} pixels`;
    picture.src = pictureUrl;
    await picture.decode().catch(() => undefined);
    if (id === latestRequest) showOutcome({ kind: 'exchange', exchange, pictureUrl });
    else URL.revokeObjectURL(pictureUrl);
  } catch (error) {
    if (id === latestRequest) showOutcome({ kind: 'failure', message: toError(error).message });
  }
}

function showOutcome(next: Outcome): void {
  const before = outcome.value;
  outcome.value = next;
  isWaiting.value = false;
  if (before.kind === 'exchange' && before.pictureUrl !== undefined) {
    URL.revokeObjectURL(before.pictureUrl);
  }
}
