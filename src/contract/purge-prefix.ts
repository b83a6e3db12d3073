import { findOwnTarget } from './external-url.ts';
import { canBeginOriginKey, decodeOnce, isOriginKey } from './media-path.ts';
import type { TargetReading } from './media-request.ts';
import { contractResources, platformResourceNames, resourceRows } from './resources.ts';

/** Originals that a prefix of URLs names. */
export interface PrefixKeys {
  readonly originKeys: readonly string[];
  /** With a slash at the end. */
  readonly folders: readonly string[];
}

const fileExtensions = platformResourceNames.flatMap(
  (name) => resourceRows[name].fileExtensions ?? [],
);

/**
 * Returns the originals below a prefix of URLs, as a CDN takes it: `cdn.example.com/avatars/1/ab12` (contract §14).
 *
 * @param text without a scheme; the path may have the extension of a URL, or none
 * @returns the fault, as a sentence, if the prefix is below none of our public URLs, or names nothing that can exist
 */
export function findPrefixKeys(
  text: string,
  { publicUrls = [], resources = contractResources }: TargetReading,
): PrefixKeys | string {
  const [target] = ['https', 'http'].flatMap(
    (scheme) => findOwnTarget(`${scheme}://${text}`, publicUrls) ?? [],
  );
  if (target === undefined || /[?#]/.test(text)) {
    return 'Expected the host and path of one of PUBLIC_URLS, without a scheme, and a path below it.';
  }
  const segments = target.slice(1).replace(/\/$/, '').split('/');
  const key = segments.map((segment) => decodeOnce(segment) ?? segment).join('/');
  const isWhole = isOriginKey(key, resources);
  const named = isWhole
    ? [key]
    : [
        key.replace(/\.[a-z0-9]+$/i, ''),
        ...fileExtensions.map((extension) => `${key}.${extension}`),
      ];
  const originKeys = named.filter((each) => isOriginKey(each, resources));
  // Attachments of any depth may be below the key of another one.
  const isFolder = canBeginOriginKey(key, resources) && (!isWhole || resources.isLenient);
  const folders = isFolder ? [`${key}/`] : [];
  if (originKeys.length + folders.length > 0) return { originKeys, folders };
  return 'Expected the path of an original, with or without its extension, or of a folder of originals.';
}
