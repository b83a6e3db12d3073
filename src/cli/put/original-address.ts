import { formatPath, parsePath } from '../../contract/media-path.ts';
import { originKeyOf, parseOriginKey, unmarkedKeyOf } from '../../contract/origin-key.ts';
import { resourceRows } from '../../contract/resources.ts';
import { type CommandFault, usageFault } from '../command.ts';

/** A key that Darkroom reads an original from, and a URL that it is served at. */
export interface OriginalAddress {
  readonly key: string;
  /** Path without parameters. */
  readonly urlPath: string;
  /** Whether nothing but an image can be served from there; of attachments, anything can. */
  readonly isImage: boolean;
}

/**
 * Reads the key of an original as it was typed.
 *
 * @throws CommandFault that says which keys there are, or which one was meant
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

/** The key of what a URL path asks for; `undefined` where it asks for nothing that has one. */
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
