import { extensions, formatOfExtension, outputFormats } from '../../contract/image-formats.ts';
import type { DescribedResource } from '../explorer-data.ts';

export interface RequestedPicture {
  readonly resource: DescribedResource;
  /** Empty if the path ends with a file name. */
  readonly extension: string;
  /** Query parameters; the service applies defaults to absent ones. */
  readonly parameters: Readonly<Record<string, string>>;
}

/** Removes aliases of extensions: keeps `jpg`, drops `jpeg`. */
export function withoutAliases(words: readonly string[]): readonly string[] {
  return words.filter((word) => word === nameOfFormat(word));
}

/** Returns the usual extension of a format: `jpg` for `jpeg`. Returns other words unchanged. */
export function nameOfFormat(word: string): string {
  const extension = extensions.find((each) => each === word);
  return extension === undefined ? word : outputFormats[formatOfExtension(extension)].extensions[0];
}

/** Whether a parameter's value has an effect. Invalid values have: the service rejects them. */
export function hasEffect(picture: RequestedPicture, name: string, value: string): boolean {
  const { idle } = picture.resource;
  return !idle[formatOf(picture)]?.includes(`${name}=${value}`);
}

function formatOf({ resource, extension, parameters }: RequestedPicture): string {
  const format = extension || parameters.format;
  if (format) return format;
  const isUnchanged = resource.parameters.every(({ name, default: fallback = '' }) =>
    [undefined, '', fallback].includes(name === 'animated' ? '' : parameters[name]),
  );
  return isUnchanged ? 'unchanged' : '';
}
