/** URLs of media: `@darkroom-media/darkroom/urls`. */

import type { AttachmentOptions, Id, KindMethods } from './kinds.ts';
import { formatQuery, type Options } from './parameters.ts';
import { nearestSize, srcset } from './sizes.ts';
import { defaultAvatars, type KindRow, kinds, parameters, type ValueKind } from './tables.ts';
import { formatValue, parseBase, quote, throwIfAny } from './values.ts';

export type { Extension, Quality } from '../contract/image-formats.ts';
export type { AssetOptions, AttachmentOptions, Id, Kind, KindArguments, Size } from './kinds.ts';
export { nearestSize, sizes, srcset } from './sizes.ts';

export interface MediaUrlsOptions {
  /** Base URL of user content. */
  readonly cdnUrl: string;
  /** Base URL of default avatars; omit for `cdnUrl`. */
  readonly staticUrl?: string | undefined;
}

class UrlBuilder {
  readonly nearestSize = nearestSize;
  readonly srcset = srcset;
  readonly #staticUrl: string;

  constructor({ cdnUrl, staticUrl = cdnUrl }: MediaUrlsOptions) {
    const base = parseBase('cdnUrl', cdnUrl);
    this.#staticUrl = parseBase('staticUrl', staticUrl);
    for (const [kind, row] of Object.entries(kinds)) {
      const build = (...values: unknown[]) => base + formatPath(kind, row, values);
      Object.defineProperty(this, row.method, { value: build });
    }
  }

  /** Returns the URL of a user's default avatar. */
  defaultAvatar(userId: Id): string {
    const faults: string[] = [];
    const id = formatValue('user_id', 'snowflake', userId, faults);
    throwIfAny('URL of default avatar', faults);
    return `${this.#staticUrl}/avatars/${BigInt(id) % BigInt(defaultAvatars)}.png`;
  }

  /** Adds parameters to a URL of an attachment or external media from the platform's API. Its signature remains valid. */
  transform(url: string, options: AttachmentOptions): string {
    const faults: string[] = [];
    const query = formatQuery('external', { ...options }, faults);
    const [path, sent] = url.split(/\?(.*)/s);
    if (url.includes('#')) faults.push('the URL has a fragment.');
    for (const name of new URLSearchParams(sent).keys()) {
      if (Object.hasOwn(options, name)) faults.push(`the URL already has ${name}.`);
    }
    throwIfAny('URL of media', faults);
    return query === '' ? url : `${path}?${sent ? `${sent}&` : ''}${query}`;
  }
}

/**
 * Builder of URLs, with one method for each kind of media. Methods validate their arguments as the service does, and throw
 * a RangeError with all validation errors.
 */
export type MediaUrls = UrlBuilder & KindMethods;
export const MediaUrls = UrlBuilder as new (options: MediaUrlsOptions) => MediaUrls;

/** @param values arguments of a method: values of the placeholders, then options */
function formatPath(kind: string, row: KindRow, values: readonly unknown[]): string {
  const { path, query, formats = parameters.format?.values ?? [] } = row;
  const faults: string[] = [];
  let count = 0;
  const withValues = path.replace(/\{(\w+):(\w+)\}/g, (_, name: string, valueKind: ValueKind) =>
    formatValue(name, valueKind, values[count++], faults),
  );
  const options = { ...(values[count] as Options | undefined) };
  let extension = '';
  if (formats.length > 0) {
    const { format = formats.find((each) => each === 'webp') } = options;
    delete options.format;
    extension = `.${format}`;
    if (!formats.includes(String(format))) {
      faults.push(`format is ${quote(format)}; expected one of ${formats.join(', ')}.`);
    }
  }
  const search = formatQuery(query, options, faults);
  throwIfAny(`URL of ${kind}`, faults);
  return withValues + extension + (search && `?${search}`);
}
