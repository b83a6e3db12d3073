import { computed, signal } from '@preact/signals';
import type { ResourceName } from '../../contract/resources.ts';
import type { ContractTables } from '../explorer-data.ts';
import type { Exchange, Fault } from './exchange.ts';
import { formatShare } from './labels.ts';
import { identify, type MediaChoice } from './media-choice.ts';
import { facts, framesById } from './originals.ts';

/** What is on the stage. */
export type Outcome =
  | { readonly kind: 'nothing' }
  /** With the picture as a blob: what is shown is what was weighed. */
  | { readonly kind: 'exchange'; readonly exchange: Exchange; readonly pictureUrl?: string }
  | { readonly kind: 'failure'; readonly message: string };

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
/** The URL of another site that the choice is signed for, as it was put. */
export const link = signal('');
/** Why that is not signed. */
export const linkFault = signal<string>();
export const view = signal<'sheet' | 'bench'>('sheet');

/** The exchange on the stage, if there is one. */
export const exchange = computed(() =>
  outcome.value.kind === 'exchange' ? outcome.value.exchange : undefined,
);

/** Whether it is of a picture: nothing else has other sizes and qualities. */
export const isPictureShown = computed(() => exchange.value?.body.kind === 'picture');

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
  if (linkFault.value !== undefined) return [{ path: 'link', message: linkFault.value }];
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

/** A number of bytes as a part of the original's, in words; `undefined` where the list does not have that. */
export function describeShare(sizeBytes: number): string | undefined {
  const originalBytes = currentFrame.value?.sizeBytes;
  if (originalBytes === undefined) return undefined;
  return `${formatShare(sizeBytes, originalBytes)} of the original`;
}

/** Whether the explorer signs URLs of a kind. */
export function canSign(name: ResourceName): boolean {
  return contract.value.signs.includes(name);
}
