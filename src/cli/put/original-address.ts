import {
  formatPath,
  originKeyOf,
  parseOriginKey,
  parsePath,
  unmarkedKeyOf,
} from '../../contract/media-path.ts';
import { resourceRows } from '../../contract/resources.ts';
import { type CommandFault, usageFault } from '../command.ts';

/** The key of an original, and a URL that serves the original. */
export interface OriginalAddress {
  readonly key: string;
  /** Path without parameters. */
  readonly urlPath: string;
  /** Whether only images are served at the URL; attachments may be any file. */
  readonly isImage: boolean;
}

/**
 * Parses the key of an original as typed.
 *
 * @throws CommandFault that lists the keys, or names the one that was probably meant
 */
export function parseAddress(text: string): OriginalAddress {
  const key = parseOriginKey(text);
  if (key === undefined) throw refusal(text, findMeantKey(text));
  const meant = unmarkedKeyOf(text);
  if (meant !== undefined) throw refusal(text, meant);
  const isImage = resourceRows[key.resource].query !== 'external';
  const urlPath = formatPath({ ...key, extension: isImage ? 'webp' : undefined });
  return { key: text, urlPath, isImage };
}

/** Returns the key of the original behind a URL path; `undefined` if the path has none. */
function findMeantKey(text: string): string | undefined {
  const parsed = parsePath(text.startsWith('/') ? text : `/${text}`);
  return parsed.kind === 'valid' ? originKeyOf(parsed.path) : undefined;
}

function refusal(text: string, meant: string | undefined): CommandFault {
  const forms = Object.values(resourceRows).flatMap(({ originKey }) => originKey ?? []);
  const hint =
    meant === undefined
      ? `Keys are:\n${forms.map((form) => `  ${form}`).join('\n')}`
      : `What is served there has the key ${meant}`;
  return usageFault(`"${text}" is the key of no original. ${hint}`);
}
