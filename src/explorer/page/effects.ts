import {
  extensions,
  formatOfExtension,
  isLossless,
  type OutputFormat,
  outputFormats,
  type Quality,
} from '../../contract/image-formats.ts';
import type { DescribedResource } from '../explorer-data.ts';

/** What a picture is asked for as. */
export interface AskedPicture {
  readonly resource: DescribedResource;
  /** Empty where the path ends with a file name. */
  readonly extension: string;
  /** What is in the query; what is not there is left to the service. */
  readonly parameters: Readonly<Record<string, string>>;
}

/** The format that a choice asks for; `undefined`: the original's own, or one that the contract does not have. */
function formatOf({ extension, parameters }: AskedPicture): OutputFormat | undefined {
  return formatOfWord(extension === '' ? parameters.format : extension);
}

/** Words for formats, one for each: `jpg` and `jpeg` are the same. */
export function withoutAliases(words: readonly string[]): readonly string[] {
  return words.filter((word) => word === nameOfFormat(word));
}

/** The word by which a format is chosen: `jpg` for `jpeg`; any other word is its own. */
export function nameOfFormat(word: string): string {
  const format = formatOfWord(word);
  return format === undefined ? word : outputFormats[format].extensions[0];
}

function formatOfWord(word: string | undefined): OutputFormat | undefined {
  const known = extensions.find((each) => each === word);
  return known && formatOfExtension(known);
}

/**
 * Whether a value of a parameter changes anything of a choice (contract §2, "flags without effect"). What the
 * contract does not have always does: it is refused.
 */
export function hasEffect(choice: AskedPicture, name: string, value: string): boolean {
  const parameter = choice.resource.parameters.find((each) => each.name === name);
  if (parameter?.form.kind !== 'choice' || !parameter.form.values.includes(value)) return true;
  if (name === 'animated') return canMove(choice);
  if (name === 'quality' && value !== parameter.default) {
    return !isSameQuality(formatOf(choice), value, parameter.default);
  }
  return true;
}

/** Whether `animated` decides anything. */
function canMove(choice: AskedPicture): boolean {
  const { extension, parameters } = choice;
  const isAsset = extension !== '';
  const format = formatOf(choice);
  if (format !== undefined) {
    const { canAnimate, animatesUnasked } = outputFormats[format];
    return canAnimate && !(isAsset && animatesUnasked);
  }
  // An attachment that nothing is asked of is sent as it is.
  const isAsked = [parameters.width, parameters.height, parameters.format].some(Boolean);
  return isAsset || isAsked || (parameters.quality ?? 'lossless') !== 'lossless';
}

function isSameQuality(
  format: OutputFormat | undefined,
  value: string,
  fallback: string | undefined,
): boolean {
  if (format === undefined) return false;
  const losesNothing = (quality: string | undefined) => isLossless(format, quality as Quality);
  return losesNothing(value) && losesNothing(fallback);
}
