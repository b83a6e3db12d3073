import { extensions, formatOfExtension, outputFormats } from '../../contract/image-formats.ts';
import type { DescribedResource } from '../explorer-data.ts';

export interface RequestedPicture {
  readonly resource: DescribedResource;
  /** Empty if the path ends with a file name. */
  readonly extension: string;
  /** Parameters of the query; the service applies defaults to the rest. */
  readonly parameters: Readonly<Record<string, string>>;
}

/** Returns one word per format: `jpg` and `jpeg` are the same. */
export function withoutAliases(words: readonly string[]): readonly string[] {
  return words.filter((word) => word === nameOfFormat(word));
}

/** Returns the usual word of a format: `jpg` for `jpeg`; any other word unchanged. */
export function nameOfFormat(word: string): string {
  const extension = extensions.find((each) => each === word);
  return extension === undefined ? word : outputFormats[formatOfExtension(extension)].extensions[0];
}

/** Whether a value of a parameter has any effect. The service rejects values outside of the contract, so these do. */
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
