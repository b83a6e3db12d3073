import { batch, computed, signal } from '@preact/signals';
import type {
  DescribedResource,
  ListedOriginal,
  OriginalFacts,
  OriginalsList,
} from '../explorer-data.ts';
import { formatPath, identify, type MediaChoice } from './media-choice.ts';

/** How many originals are asked about at a time: their paths are in one URL. */
const FACTS_AT_A_TIME = 30;

/** Files that a picture can be made of, by their names alone: others are not asked for. */
const PICTURE_NAME = /\.(?:a?png|jpe?g|webp|gif|avif|hei[cf])$/i;

/** An original on the sheet. */
export interface Frame extends ListedOriginal {
  /** As `identify` names it. */
  readonly id: string;
  readonly resource: DescribedResource;
  /** Its ids and its own name, as they are searched. */
  readonly label: string;
}

/** The originals of a kind that were found. */
export interface Shelf {
  readonly resource: DescribedResource;
  readonly frames: readonly Frame[];
  /** Whether there are no others. */
  readonly isComplete: boolean;
}

/** What came of asking for the list. */
export type Listing =
  | { readonly kind: 'shelves'; readonly shelves: readonly Shelf[] }
  | { readonly kind: 'failure'; readonly code: string; readonly message: string };

/** What is left of the sheet; empty texts leave all. */
export interface Filter {
  readonly text: string;
  /** Name of a kind. */
  readonly kind: string;
  /** Format of the original. */
  readonly format: string;
  readonly isMoving: boolean;
}

export const listing = signal<Listing>({ kind: 'shelves', shelves: [] });
export const filter = signal<Filter>({ text: '', kind: '', format: '', isMoving: false });

/** What is known of the originals by their ids; `undefined` where it was asked, and there is nothing to know. */
export const facts = signal<ReadonlyMap<string, OriginalFacts | undefined>>(new Map());

/** All shelves, the empty ones, too; none where the list cannot be had. */
export const shelves = computed(() =>
  listing.value.kind === 'shelves' ? listing.value.shelves : [],
);

const allFrames = computed(() => shelves.value.flatMap(({ frames }) => frames));

/** All originals by their ids. */
export const framesById = computed(
  () => new Map(allFrames.value.map((each) => [each.id, each] as const)),
);

/** The shelves with what the filter leaves of them; those without anything are left out. */
export const visibleShelves = computed((): readonly Shelf[] =>
  shelves.value
    .map((shelf) => ({ ...shelf, frames: shelf.frames.filter(fitsFilter) }))
    .filter(({ frames }) => frames.length > 0),
);

/** Whether the filter asks for what is not known from the list alone. */
export const needsFacts = computed(() => filter.value.isMoving || filter.value.format !== '');

/** Originals that fit by what the list says, and of which no more is known yet. */
export const unknownFrames = computed(() =>
  allFrames.value.filter(
    (frame) => fitsList(frame) && isPicture(frame) && !facts.value.has(frame.id),
  ),
);

/** Formats of originals that were seen. */
export const knownFormats = computed(() =>
  [...new Set([...facts.value.values()].flatMap((each) => each?.format ?? []))].sort(),
);

/** The first original of a kind on the list. */
export function findFirst({ name }: DescribedResource): Frame | undefined {
  return shelves.value.find(({ resource }) => resource.name === name)?.frames[0];
}

/** Loads the list; the rest of the page needs none. */
export async function loadOriginals(resources: readonly DescribedResource[]): Promise<void> {
  let code = 'No response';
  try {
    const response = await fetch('/explorer/originals.json');
    code = `HTTP ${response.status}`;
    const list = await response.json();
    listing.value = response.ok
      ? { kind: 'shelves', shelves: toShelves(list satisfies OriginalsList, resources) }
      : { kind: 'failure', code: list.code ?? code, message: list.message ?? response.statusText };
  } catch (error) {
    listing.value = { kind: 'failure', code, message: toError(error).message };
  }
}

/** What was thrown, as an error. */
export function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

type Named = Pick<MediaChoice, 'resource' | 'values'>;

const queue = new Map<string, Named>();
let isAsking = false;

/** Asks what originals are, those that came last first; they are in `facts` once it is known. */
export function askFacts(wanted: readonly Named[]): void {
  for (const each of wanted) {
    const id = identify(each);
    if (!facts.value.has(id)) queue.set(id, each);
  }
  if (!isAsking && queue.size > 0) void askQueued();
}

async function askQueued(): Promise<void> {
  isAsking = true;
  // What is seen on the sheet together is asked together.
  await Promise.resolve();
  while (queue.size > 0) {
    const asked = [...queue].slice(-FACTS_AT_A_TIME);
    for (const [id] of asked) queue.delete(id);
    const found = await fetchFacts(asked.map(([, choice]) => choice));
    batch(() => {
      const known = asked.map(([id], index) => [id, found[index]] as const);
      facts.value = new Map([...facts.value, ...known]);
    });
  }
  isAsking = false;
}

async function fetchFacts(
  choices: readonly Named[],
): Promise<readonly (OriginalFacts | undefined)[]> {
  const query = new URLSearchParams(
    choices.map((choice) => ['path', formatPath({ ...choice, extension: 'png', parameters: {} })]),
  );
  try {
    const response = await fetch(`/explorer/facts.json?${query}`);
    if (!response.ok) return [];
    const { originals }: { originals: readonly (OriginalFacts | null)[] } = await response.json();
    return originals.map((each) => each ?? undefined);
  } catch {
    return [];
  }
}

function toShelves(
  { shelves }: OriginalsList,
  resources: readonly DescribedResource[],
): readonly Shelf[] {
  return shelves.flatMap(({ resource: name, originals, isComplete }) => {
    const resource = resources.find((each) => each.name === name);
    if (resource === undefined) return [];
    const frames = originals.map((original) => ({
      ...original,
      id: identify({ resource, values: original.values }),
      resource,
      label: Object.values(original.values).join(' / '),
    }));
    return [{ resource, frames, isComplete }];
  });
}

/** Whether an original is a file that a picture can be made of, going by its name. */
export function isFilePicture({ values }: Frame): boolean {
  return PICTURE_NAME.test(values.filename ?? '');
}

/** Whether there is a picture of an original; of files, not always. */
export function isPicture(frame: Frame): boolean {
  return frame.resource.name !== 'attachment' || isFilePicture(frame);
}

function fitsList({ resource, label }: Frame): boolean {
  const { text, kind } = filter.value;
  const words = `${resource.name} ${label}`.toLowerCase();
  return (kind === '' || resource.name === kind) && words.includes(text.trim().toLowerCase());
}

function fitsFilter(frame: Frame): boolean {
  const { format, isMoving } = filter.value;
  if (!fitsList(frame)) return false;
  if (format === '' && !isMoving) return true;
  const known = facts.value.get(frame.id);
  return (format === '' || known?.format === format) && (!isMoving || known?.isMoving === true);
}
