import type { ContractTables, ListedOriginal, OriginalsList } from '../explorer-data.ts';
import { ContactSheet } from './contact-sheet.ts';
import { CopyLine } from './copy-line.ts';
import { find } from './element.ts';
import { ask } from './exchange.ts';
import { formatBytes } from './labels.ts';
import { formatCurl, formatTarget, type MediaChoice, readTarget } from './media-choice.ts';
import { QualitySlider } from './quality-slider.ts';
import { Stage, showFacts } from './response-view.ts';
import { SizeLadder } from './size-ladder.ts';
import { UrlForm } from './url-form.ts';

/** A text is asked for when so long nothing was typed, in milliseconds. */
const TYPING_MS = 300;

/** The place of the page where the sheet fills a narrow screen. */
const SHEET_HASH = '#sheet';

const contract: ContractTables = await (await fetch('/explorer/contract.json')).json();
const { resources } = contract;

const sheet = new ContactSheet(find('sheet', HTMLElement));
const bench = find('bench', HTMLElement);
const stage = new Stage(find('stage', HTMLElement));
const facts = find('response', HTMLElement);
const urlLine = new CopyLine(find('url', HTMLElement), 'URL');
const curlLine = new CopyLine(find('curl', HTMLElement), 'curl');
const slider = new QualitySlider(find('compare', HTMLElement));
const form = new UrlForm({
  root: find('controls', HTMLFormElement),
  resources,
  onChange: (choice, isTyping) => show(choice, { isTyping }),
});
const ladder = new SizeLadder({
  root: find('ladder', HTMLFieldSetElement),
  note: find('ladder-note', HTMLElement),
  button: find('measure', HTMLButtonElement),
  widths:
    resources
      .flatMap(({ parameters }) => parameters)
      .flatMap(({ name, form }) => (name === 'size' && form.kind === 'choice' ? [form.values] : []))
      .at(0) ?? [],
  onPick: (parameter, width) => {
    if (current === undefined) return;
    const parameters = { ...current.parameters, height: '', [parameter]: width };
    show({ ...current, parameters });
  },
});

let current: MediaChoice | undefined;
let asked = 0;
let timer = 0;

/** Puts a choice on the workbench, and asks for it. */
function show(choice: MediaChoice, { isTyping = false } = {}): void {
  current = choice;
  const target = formatTarget(choice);
  history.replaceState(null, '', `#${target}`);
  const original = sheet.mark(choice);
  describe(choice, original);
  form.show(choice);
  const url = location.origin + target;
  const path = target.split('?', 1)[0] ?? '';
  urlLine.show([
    { text: location.origin, tone: 'soft' },
    { text: path },
    { text: target.slice(path.length), tone: 'tone' },
  ]);
  curlLine.show([{ text: formatCurl(url, choice) }]);
  ladder.show(choice);
  stage.wait();
  clearTimeout(timer);
  asked += 1;
  const turn = asked;
  timer = window.setTimeout(() => request(choice, original, turn), isTyping ? TYPING_MS : 0);
}

/** @param turn that of the choice: the response to an earlier one is not shown */
async function request(
  choice: MediaChoice,
  original: ListedOriginal | undefined,
  turn: number,
): Promise<void> {
  try {
    const exchange = await ask(formatTarget(choice));
    if (turn !== asked) return;
    showFacts(facts, exchange, original?.sizeBytes);
    await stage.show(exchange);
    if (turn !== asked) return;
    // What is no picture has no other sizes and qualities.
    const isPicture = exchange.body.kind === 'picture';
    const hasQuality = choice.resource.parameters.some(({ name }) => name === 'quality');
    find('ladder-section', HTMLElement).hidden = !isPicture || !ladder.isOfUse;
    find('compare-section', HTMLElement).hidden = !isPicture || !hasQuality;
    if (isPicture && hasQuality) slider.show(choice);
  } catch (error) {
    if (turn !== asked) return;
    facts.replaceChildren();
    stage.showFailure(error instanceof Error ? error.message : String(error));
  }
}

function describe({ resource, values }: MediaChoice, original: ListedOriginal | undefined): void {
  const name = Object.values(values).at(-1) ?? '';
  find('original', HTMLElement).textContent = name;
  const size =
    original === undefined ? 'not in the list' : `${formatBytes(original.sizeBytes)} original`;
  find('provenance', HTMLElement).textContent = `${resource.name}, ${size}`;
  document.title = `${name} · Darkroom explorer`;
}

/** Shows what the address of the page names. */
function follow(): void {
  const target = location.hash.slice(1);
  const choice = target.startsWith('/') ? readTarget(target, resources) : undefined;
  document.body.dataset.view = choice === undefined ? 'sheet' : 'bench';
  if (choice !== undefined) {
    show(choice);
    return;
  }
  if (current !== undefined) return;
  const first = sheet.firstTarget;
  const picked = first === undefined ? undefined : readTarget(first, resources);
  if (picked === undefined) return;
  show(picked);
  // It was not picked by hand: on a narrow screen, the sheet stays.
  history.replaceState(null, '', SHEET_HASH);
}

/** Shows the originals, or why there is no list of them; the rest of the page needs none. */
async function listOriginals(): Promise<void> {
  let code = 'No response';
  try {
    const response = await fetch('/explorer/originals.json');
    code = `HTTP ${response.status}`;
    const list = await response.json();
    if (response.ok) {
      sheet.show(list satisfies OriginalsList, resources);
    } else {
      sheet.showFailure(list.code ?? code, list.message ?? response.statusText);
    }
  } catch (error) {
    sheet.showFailure(code, error instanceof Error ? error.message : String(error));
  }
}

bench.closest('main')?.removeAttribute('hidden');
await listOriginals();
follow();
addEventListener('hashchange', () => {
  follow();
  if (matchMedia('(max-width: 60rem)').matches && document.body.dataset.view === 'bench') {
    bench.focus();
    scrollTo({ top: 0 });
  }
});
