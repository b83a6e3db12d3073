import type { DescribedResource } from '../explorer-data.ts';
import { ask, askSigned, SigningRefused } from './exchange.ts';
import {
  findTarget,
  formatPath,
  formatTarget,
  keyOf,
  type MediaChoice,
  placeholdersOf,
  readTarget,
  usualExtensionOf,
} from './media-choice.ts';
import { askFacts, facts, findFirst, framesById, toError } from './originals.ts';
import {
  canSign,
  choice,
  isBlank,
  isWaiting,
  link,
  linkFault,
  type Outcome,
  outcome,
  resources,
  target,
  typedUrl,
  view,
} from './state.ts';
import { chooseFirst } from './thumbnail.ts';

/** Pause in typing after which a text is requested, in milliseconds. */
const TYPING_MS = 300;

/** Position of the page where the sheet fills a narrow screen. */
const SHEET_HASH = '#sheet';

let asked = 0;
let timer = 0;

interface Showing {
  /** Whether a text is being typed, which may be incomplete. */
  readonly isTyping?: boolean;
  /** Input of the URL line, and the target in it. */
  readonly typed?: { readonly text: string; readonly target: string };
}

/** Shows a choice on the workbench, and requests it. */
function show(chosen: MediaChoice, { isTyping = false, typed }: Showing = {}): void {
  if (choice.value !== undefined && formatPath(chosen) !== formatPath(choice.value))
    link.value = '';
  linkFault.value = undefined;
  choice.value = chosen;
  typedUrl.value = typed?.text;
  target.value = typed?.target ?? formatTarget(chosen);
  history.replaceState(null, '', `#${target.value}`);
  const turn = beginTurn();
  if (isBlank.value) {
    present({ kind: 'nothing' });
    return;
  }
  askFacts([chosen]);
  isWaiting.value = true;
  timer = window.setTimeout(() => request(turn), isTyping ? TYPING_MS : 0);
}

export function askAgain(): void {
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

/** Takes the URL of another site, and shows the signed path for it. */
export function putLink(text: string): void {
  const turn = beginTurn();
  link.value = text;
  isWaiting.value = true;
  timer = window.setTimeout(async () => {
    const signed = await askSigned('url', text).catch(toError);
    if (turn !== asked) return;
    const isRefused = signed instanceof Error;
    const found = isRefused ? undefined : readTarget(signed, resources.value);
    if (found === undefined) {
      present({ kind: 'nothing' });
      linkFault.value = isRefused ? signed.message : undefined;
      return;
    }
    const parameters = found.resource === choice.value?.resource ? choice.value.parameters : {};
    show({ ...found, parameters });
    link.value = text;
  }, TYPING_MS);
}

/** Invalidates earlier requests, whose responses are not shown. */
function beginTurn(): number {
  clearTimeout(timer);
  asked += 1;
  return asked;
}

/** Completes the input of the URL line: the URL of another site is signed. */
export function commitUrl(): void {
  const text = typedUrl.value?.trim() ?? '';
  const isForeign = target.value === undefined && /^https?:\/\/[^/]/i.test(text);
  if (isForeign && canSign('external media')) putLink(text);
}

/** Shows the first original of another kind, or empty fields if none is listed. */
export function changeKind(resource: DescribedResource): void {
  const first = findFirst(resource);
  if (first !== undefined) {
    show(chooseFirst(first, facts.value.get(first.id)?.isMoving));
    return;
  }
  const values = Object.fromEntries(placeholdersOf(resource).map((name) => [name, '']));
  show({ resource, values, extension: usualExtensionOf(resource), parameters: {} });
}

/** Changes a part of the choice, and drops a signature whose path changes. */
export function change(part: Partial<MediaChoice>, options?: Showing): void {
  if (choice.value === undefined) return;
  const changed = { ...choice.value, ...part };
  const isSigned = formatPath(changed) === formatPath(choice.value);
  show(isSigned ? changed : { ...changed, signature: undefined }, options);
}

/** Shows the choice in the page's address. */
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
  show(chooseFirst(first));
  // Nobody picked this original: on a narrow screen, the sheet stays.
  history.replaceState(null, '', SHEET_HASH);
}

/** @param turn of the choice: the response to an earlier turn is not shown */
async function request(turn: number): Promise<void> {
  try {
    await sign(turn);
    if (turn !== asked) return;
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
    if (turn === asked) present({ kind: 'failure', message: toError(error).message });
  }
}

/** Signs the choice if necessary, unless a person typed it. */
async function sign(turn: number): Promise<void> {
  const chosen = choice.value;
  if (chosen === undefined || chosen.signature !== undefined || typedUrl.value !== undefined)
    return;
  if (chosen.resource.name !== 'attachment' || !canSign('attachment')) return;
  // If signing is refused, the response to the unsigned URL says why.
  const signed = await askSigned('key', keyOf(chosen)).catch((error: unknown) => {
    if (error instanceof SigningRefused) return '';
    throw error;
  });
  const signature = readTarget(signed, resources.value)?.signature;
  if (turn !== asked || signature === undefined) return;
  choice.value = { ...chosen, signature };
  target.value = formatTarget(choice.value);
  history.replaceState(null, '', `#${target.value}`);
}

function present(next: Outcome): void {
  const before = outcome.value;
  outcome.value = next;
  isWaiting.value = false;
  if (before.kind === 'exchange' && before.pictureUrl !== undefined) {
    URL.revokeObjectURL(before.pictureUrl);
  }
}
