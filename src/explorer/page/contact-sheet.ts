import type { DescribedResource, ListedOriginal, OriginalsList } from '../explorer-data.ts';
import { create } from './element.ts';
import { formatBytes, formatHeading } from './labels.ts';
import { formatTarget, type MediaChoice } from './media-choice.ts';
import { createCard, createThumbnail, isFilePicture, isPicture, shapeOf } from './thumbnail.ts';

interface Frame {
  readonly original: ListedOriginal;
  readonly link: HTMLAnchorElement;
}

/** All originals that were found, by kind: each a link to its place on the workbench. */
export class ContactSheet {
  readonly #root: HTMLElement;
  readonly #frames = new Map<string, Frame>();

  constructor(root: HTMLElement) {
    this.#root = root;
    root.addEventListener('keydown', (event) => this.#move(event));
  }

  /** Shows the originals; those of kinds that the contract does not have are left out. */
  show({ shelves }: OriginalsList, resources: readonly DescribedResource[]): void {
    const sections = shelves.flatMap(({ resource: name, originals, isComplete }) => {
      const resource = resources.find((each) => each.name === name);
      if (resource === undefined || originals.length === 0) return [];
      const count = isComplete ? String(originals.length) : `the first ${originals.length}`;
      const heading = create('h2', '', formatHeading(name), create('span', 'soft', count));
      const list = create('ul', `frames ${shapeOf(name)}`);
      list.append(...originals.map((original) => this.#createFrame(resource, original)));
      return [create('section', '', heading, list)];
    });
    const isEmpty = shelves.every(
      ({ resource, originals }) => resource === 'default avatar' || originals.length === 0,
    );
    this.#root.replaceChildren(...(isEmpty ? [describeEmptiness()] : []), ...sections);
  }

  /** Shows that the originals cannot be listed; default avatars and the URL builder need no list. */
  showFailure(code: string, message: string): void {
    const notice = create('div', 'notice', create('h2', '', 'The originals cannot be listed'));
    notice.append(create('p', '', create('code', '', code), ` ${message}`));
    this.#root.replaceChildren(notice);
  }

  /** Marks the original of a choice, and returns it; `undefined` where it is not on the sheet. */
  mark(choice: MediaChoice): ListedOriginal | undefined {
    const current = this.#frames.get(identify(choice.resource, choice.values));
    for (const { link } of this.#frames.values()) link.removeAttribute('aria-current');
    current?.link.setAttribute('aria-current', 'true');
    current?.link.scrollIntoView({ block: 'nearest' });
    return current?.original;
  }

  /** What the first frame links to; `undefined` of an empty sheet. */
  get firstTarget(): string | undefined {
    const [first] = this.#frames.values();
    return first?.link.hash.slice(1);
  }

  #createFrame(resource: DescribedResource, original: ListedOriginal): HTMLLIElement {
    const link = create('a');
    link.href = `#${formatTarget(chooseFirst(resource, original))}`;
    const names = Object.values(original.values);
    const size = formatBytes(original.sizeBytes);
    link.setAttribute('aria-label', `${resource.name} ${names.join(' / ')}, ${size}`);
    link.title = `${names.at(-1)}, ${size}`;
    const name = names.at(-1) ?? '';
    const isFile = resource.name === 'attachment';
    link.append(
      isPicture(resource, original) ? createThumbnail(resource, original) : createCard(name),
    );
    if (isFile) link.append(create('span', 'caption', name));
    this.#frames.set(identify(resource, original.values), { original, link });
    return create('li', '', link);
  }

  /** Arrow keys go from frame to frame by their places on the screen; the tab key goes in their order. */
  #move(event: KeyboardEvent): void {
    const links = [...this.#frames.values()].map(({ link }) => link);
    const here = links.findIndex((link) => link.matches(':focus'));
    const current = links[here];
    if (current === undefined) return;
    const next = {
      ArrowLeft: links[here - 1],
      ArrowRight: links[here + 1],
      ArrowUp: nearest(current, links.slice(0, here).reverse(), -1),
      ArrowDown: nearest(current, links.slice(here + 1), 1),
      Home: links[0],
      End: links.at(-1),
    }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    next.focus();
  }
}

/** The first of the links that lies in the next row, or the one there that is nearest to the side. */
function nearest(
  from: HTMLElement,
  links: readonly HTMLAnchorElement[],
  direction: 1 | -1,
): HTMLAnchorElement | undefined {
  const { top, bottom, left } = from.getBoundingClientRect();
  const height = bottom - top;
  const beyond = links.filter(
    (link) => direction * (link.getBoundingClientRect().top - top) > height / 2,
  );
  const row = beyond[0]?.getBoundingClientRect().top;
  const distanceOf = (link: HTMLElement) => Math.abs(link.getBoundingClientRect().left - left);
  return beyond
    .filter((link) => link.getBoundingClientRect().top === row)
    .sort((a, b) => distanceOf(a) - distanceOf(b))[0];
}

/** What is asked for when an original is picked: large enough to look at, in the format clients take. */
function chooseFirst(resource: DescribedResource, original: ListedOriginal): MediaChoice {
  const { extensions, parameters } = resource;
  const [first = ''] = extensions;
  const isSized = parameters.some(({ name, default: fallback }) => name === 'size' && fallback);
  return {
    resource,
    values: original.values,
    extension: extensions.includes('webp') ? 'webp' : first,
    parameters: {
      ...(isSized && { size: '512' }),
      ...(isFilePicture(original) && { width: '640' }),
    },
  };
}

function describeEmptiness(): HTMLElement {
  const text =
    'There are no originals in the storage yet. An avatar, for example, is a file at avatars/{user_id}/{avatar_hash}.';
  return create('div', 'notice', create('p', '', text));
}

/** A marked hash and an unmarked one are of the same original. */
function identify({ name }: DescribedResource, values: Readonly<Record<string, string>>): string {
  const parts = Object.entries(values).map(([part, value]) =>
    part.endsWith('_hash') ? value.replace(/^a_/, '') : value,
  );
  return JSON.stringify([name, ...parts]);
}
