import type { DescribedResource } from '../explorer-data.ts';
import { send } from './exchange.ts';
import {
  findTarget,
  formatPath,
  formatTarget,
  identify,
  type MediaChoice,
  placeholdersOf,
  readTarget,
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

/** Address of the sheet, which fills a narrow screen. */
const SHEET_HASH = '#sheet';

let latestTurn = 0;
let timer = 0;

interface Showing {
  /** Whether a text is being typed, which may be incomplete. */
  readonly isTyping?: boolean;
  /** Input of the URL line, and the target in it. */
  readonly typed?: { readonly text: string; readonly target: string };
}

function show(chosen: MediaChoice, { isTyping = false, typed }: Showing = {}): void {
  choice.value = chosen;
  typedUrl.value = typed?.text;
  target.value = typed?.target ?? formatTarget(chosen);
  history.replaceState(null, '', `#${target.value}`);
  const turn = beginTurn();
  if (isBlank.value) {
    present({ kind: 'nothing' });
    return;
  }
  requestProperties([chosen]);
  isWaiting.value = true;
  timer = window.setTimeout(() => request(turn), isTyping ? TYPING_MS : 0);
}

export function fetchAgain(): void {
  if (choice.value === undefined || isBlank.value) return;
  const turn = beginTurn();
  isWaiting.value = true;
  void request(turn);
}

/** Takes input of the URL line; the controls follow as far as it can be parsed. */
export function putUrl(text: string): void {
  const found = findTarget(text, resources.value);
  const chosen = found === undefined ? undefined : readTarget(found, resources.value);
  if (found !== undefined && chosen !== undefined) {
    show(chosen, { isTyping: true, typed: { text, target: found } });
    return;
  }
  beginTurn();
  typedUrl.value = text;
  target.value = undefined;
  present({ kind: 'nothing' });
}

/** Invalidates earlier requests, whose responses are not shown. */
function beginTurn(): number {
  clearTimeout(timer);
  latestTurn += 1;
  return latestTurn;
}

/** Shows the first original of another kind, or empty fields if none is listed. */
export function changeKind(resource: DescribedResource): void {
  const first = findFirst(resource);
  if (first !== undefined) {
    show(chooseFirst(first, properties.value.get(first.id)?.isMoving));
    return;
  }
  const values = Object.fromEntries(placeholdersOf(resource).map((name) => [name, '']));
  show({ resource, values, extension: usualExtensionOf(resource), parameters: {} });
}

/** Changes a part of the choice; another path has another signature, if it is listed. */
export function change(part: Partial<MediaChoice>, options?: Showing): void {
  if (choice.value === undefined) return;
  const changed = { ...choice.value, ...part };
  const isSamePath = formatPath(changed) === formatPath(choice.value);
  const { signature } = (isSamePath ? changed : entriesById.value.get(identify(changed))) ?? {};
  show({ ...changed, signature }, options);
}

/** Shows the choice in the page's address; without one, the first original. */
export function follow(): void {
  const isSheet = location.hash === SHEET_HASH;
  const named = location.hash.slice(1);
  const found = named.startsWith('/') ? readTarget(named, resources.value) : undefined;
  if (found !== undefined) {
    show(found);
  } else if (choice.value === undefined) {
    const [first] = entriesById.value.values();
    if (first !== undefined) show(chooseFirst(first));
    if (isSheet) history.replaceState(null, '', SHEET_HASH);
  }
  view.value = isSheet || choice.value === undefined ? 'sheet' : 'bench';
}

/** @param turn of the choice: the response to an earlier turn is not shown */
async function request(turn: number): Promise<void> {
  try {
    const exchange = await send(target.value ?? '');
    if (turn !== latestTurn) return;
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
    if (turn === latestTurn) present({ kind: 'exchange', exchange, pictureUrl });
    else URL.revokeObjectURL(pictureUrl);
  } catch (error) {
    if (turn === latestTurn) present({ kind: 'failure', message: toError(error).message });
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
