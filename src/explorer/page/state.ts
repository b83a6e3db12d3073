import { computed, signal } from '@preact/signals';
import type { ContractTables } from '../explorer-data.ts';
import type { Exchange, Fault } from './exchange.ts';
import { formatFraction } from './labels.ts';
import { identify, type MediaChoice } from './media-choice.ts';
import { entriesById, properties } from './originals.ts';

export type Outcome =
  | { readonly kind: 'nothing' }
  /** `pictureUrl` is a blob with the bytes of the response. */
  | { readonly kind: 'exchange'; readonly exchange: Exchange; readonly pictureUrl?: string }
  | { readonly kind: 'failure'; readonly message: string };

export const contract = signal<ContractTables>({ resources: [], external: [] });
/** All kinds of URLs, including signed ones. */
export const resources = computed(() => [...contract.value.resources, ...contract.value.external]);
export const choice = signal<MediaChoice>();
export const typedUrl = signal<string>();
/** Requested path and query: user input verbatim, until a control changes. */
export const target = signal<string>();
export const outcome = signal<Outcome>({ kind: 'nothing' });
export const isWaiting = signal(false);
export const view = signal<'sheet' | 'bench'>('sheet');
/** Displayed width of the picture in CSS pixels. */
export const shownWidthPx = signal<number>();

export const exchange = computed(() =>
  outcome.value.kind === 'exchange' ? outcome.value.exchange : undefined,
);

/** Whether the response is a picture, which has other sizes and qualities. */
export const isPictureShown = computed(() => exchange.value?.body.kind === 'picture');

/** Whether all fields of the path are empty. */
export const isBlank = computed(() => {
  const values = Object.values(choice.value?.values ?? {});
  return values.every((value) => value === '');
});

/** Entry of the chosen original on the sheet, if listed. */
export const currentEntry = computed(() =>
  choice.value === undefined ? undefined : entriesById.value.get(identify(choice.value)),
);

export const currentProperties = computed(() =>
  choice.value === undefined ? undefined : properties.value.get(identify(choice.value)),
);

/** Validation errors in the response; those without a field have the path `url`. */
export const faults = computed((): readonly Fault[] => {
  if (typedUrl.value !== undefined && target.value === undefined) {
    return [
      { path: 'url', message: 'Expected a URL of the contract, such as /avatars/1/ab12.webp.' },
    ];
  }
  const { body, status } = exchange.value ?? {};
  if (body?.kind !== 'error') return [];
  if (body.errors.length > 0) return body.errors;
  const isOfUrl = status === 401 || status === 404;
  return isOfUrl ? [{ path: 'url', message: `${body.code}: ${body.message}` }] : [];
});

/** Formats a size as percentage of the original; returns `undefined` if the original is not listed. */
export function describeFraction(sizeBytes: number): string | undefined {
  const originalBytes = currentEntry.value?.sizeBytes;
  if (originalBytes === undefined) return undefined;
  return `${formatFraction(sizeBytes, originalBytes)} of the original`;
}
