import {
  extensions,
  formatOfExtension,
  isLossless,
  type OutputFormat,
  outputFormats,
  type Quality,
} from '../../contract/image-formats.ts';
import type { DescribedResource } from '../explorer-data.ts';

/** Resource, format and parameters that a picture is requested with. */
export interface AskedPicture {
  readonly resource: DescribedResource;
  /** Empty if the path ends with a file name. */
  readonly extension: string;
  /** Parameters of the query; the service applies defaults to the rest. */
  readonly parameters: Readonly<Record<string, string>>;
}

/** Returns the requested format; `undefined` for the original's own, or an unknown one. */
function formatOf({ extension, parameters }: AskedPicture): OutputFormat | undefined {
  return formatOfWord(extension === '' ? parameters.format : extension);
}

/** Returns one word per format: `jpg` and `jpeg` are the same. */
export function withoutAliases(words: readonly string[]): readonly string[] {
  return words.filter((word) => word === nameOfFormat(word));
}

/** Returns the usual word of a format: `jpg` for `jpeg`; any other word unchanged. */
export function nameOfFormat(word: string): string {
  const format = formatOfWord(word);
  return format === undefined ? word : outputFormats[format].extensions[0];
}

function formatOfWord(word: string | undefined): OutputFormat | undefined {
  const extension = extensions.find((each) => each === word);
  return extension && formatOfExtension(extension);
}

/**
 * Whether a value of a parameter has any effect (contract §2, "flags without effect"). Values outside of the contract
 * always do: the service rejects them.
 */
export function hasEffect(choice: AskedPicture, name: string, value: string): boolean {
  const parameter = choice.resource.parameters.find((each) => each.name === name);
  if (parameter?.form.kind !== 'choice' || !parameter.form.values.includes(value)) return true;
  if (name === 'animated') return canMove(choice);
  if (name === 'quality' && value !== parameter.default) {
    const format = formatOf(choice);
    const losesNothing = (quality: string | undefined): boolean =>
      format !== undefined && isLossless(format, quality as Quality);
    return !(losesNothing(value) && losesNothing(parameter.default));
  }
  return true;
}

function canMove(choice: AskedPicture): boolean {
  const { extension, parameters } = choice;
  const isAsset = extension !== '';
  const format = formatOf(choice);
  if (format !== undefined) {
    const { canAnimate, animatesUnasked } = outputFormats[format];
    return canAnimate && !(isAsset && animatesUnasked);
  }
  // An attachment without any parameters is sent unchanged.
  const isAsked = [parameters.width, parameters.height, parameters.format].some(Boolean);
  return isAsset || isAsked || (parameters.quality ?? 'lossless') !== 'lossless';
}
