import { computed, signal } from '@preact/signals';
import { sourceExtensions } from '../../contract/image-formats.ts';
import type {
  DescribedResource,
  ListedOriginal,
  OriginalProperties,
  OriginalsList,
} from '../explorer-data.ts';
import { formatPath, identify, type MediaChoice } from './media-choice.ts';

/** Maximum number of originals per request, whose URL contains all paths. */
const MAX_REQUESTED = 30;

/** Names of files that can be rendered. */
const PICTURE_NAME = new RegExp(`\\.(?:${sourceExtensions.join('|')})$`, 'i');

/** Names of files that have posters. */
const VIDEO_NAME = /\.(?:mp4|m4v|mov|webm|mkv)$/i;

export interface Entry extends ListedOriginal {
  /** Result of `identify`. */
  readonly id: string;
  readonly resource: DescribedResource;
  /** Ids and name of the original, for the search. */
  readonly label: string;
}

export interface Shelf {
  readonly resource: DescribedResource;
  readonly entries: readonly Entry[];
  readonly isComplete: boolean;
}

export type Listing =
  | { readonly kind: 'shelves'; readonly shelves: readonly Shelf[] }
  | { readonly kind: 'failure'; readonly code: string; readonly message: string };

/** Filter of the sheet; empty strings match everything. */
export interface Filter {
  readonly text: string;
  readonly kind: string;
}

export const listing = signal<Listing>({ kind: 'shelves', shelves: [] });
export const filter = signal<Filter>({ text: '', kind: '' });

/** Properties of originals by id; `undefined` if they are unknown. */
export const properties = signal<ReadonlyMap<string, OriginalProperties | undefined>>(new Map());

/** All shelves, including empty ones. */
export const shelves = computed(() =>
  listing.value.kind === 'shelves' ? listing.value.shelves : [],
);

export const entriesById = computed(
  () => new Map(shelves.value.flatMap(({ entries }) => entries).map((each) => [each.id, each])),
);

/** Non-empty shelves with the originals that match the filter. */
export const visibleShelves = computed((): readonly Shelf[] =>
  shelves.value
    .map((shelf) => ({ ...shelf, entries: shelf.entries.filter(fitsFilter) }))
    .filter(({ entries }) => entries.length > 0),
);

export function findFirst({ name }: DescribedResource): Entry | undefined {
  return shelves.value.find(({ resource }) => resource.name === name)?.entries[0];
}

/** Loads the list. The rest of the page works without it. */
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

export function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

type Named = Pick<MediaChoice, 'resource' | 'values'>;

const queue = new Map<string, Named>();
let isRequesting = false;

/** Requests properties of originals, latest first, and adds them to `properties`. */
export function requestProperties(wanted: readonly Named[]): void {
  for (const each of wanted) {
    const id = identify(each);
    if (!properties.value.has(id)) queue.set(id, each);
  }
  if (!isRequesting && queue.size > 0) void requestQueued();
}

async function requestQueued(): Promise<void> {
  isRequesting = true;
  // Waits for other originals that appear together, to request all at once.
  await Promise.resolve();
  while (queue.size > 0) {
    const wanted = [...queue].slice(-MAX_REQUESTED);
    for (const [id] of wanted) queue.delete(id);
    const found = await fetchProperties(wanted.map(([, choice]) => choice));
    const added = wanted.map(([id], index) => [id, found[index]] as const);
    properties.value = new Map([...properties.value, ...added]);
  }
  isRequesting = false;
}

async function fetchProperties(
  choices: readonly Named[],
): Promise<readonly (OriginalProperties | undefined)[]> {
  const query = new URLSearchParams(
    choices.map((choice) => ['path', formatPath({ ...choice, extension: 'png', parameters: {} })]),
  );
  try {
    const response = await fetch(`/explorer/facts.json?${query}`);
    if (!response.ok) return [];
    const { originals }: { originals: readonly (OriginalProperties | null)[] } =
      await response.json();
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
    const entries = originals.map((original) => ({
      ...original,
      id: identify({ resource, values: original.values }),
      resource,
      label: Object.values(original.values).join(' / '),
    }));
    return [{ resource, entries, isComplete }];
  });
}

/** Whether an original has the name of a file that can be rendered. */
export function isFilePicture({ values }: Entry): boolean {
  return PICTURE_NAME.test(values.filename ?? '');
}

/** Whether an original can be rendered, at least as a poster. */
export function isPicture(entry: Entry): boolean {
  const isVideo = VIDEO_NAME.test(entry.values.filename ?? '');
  return entry.resource.name !== 'attachment' || isFilePicture(entry) || isVideo;
}

function fitsFilter({ resource, label }: Entry): boolean {
  const { text, kind } = filter.value;
  const words = `${resource.name} ${label}`.toLowerCase();
  return (kind === '' || resource.name === kind) && words.includes(text.trim().toLowerCase());
}
