import { formatPath, type MediaChoice } from './media-choice.ts';

/** The key of a choice's original, which is what is signed of an attachment. */
export function keyOf(choice: MediaChoice): string {
  return decodeURIComponent(formatPath(choice)).slice(1);
}

/**
 * Asks the explorer for a signed path: of the URL of another site, or of the key of an attachment.
 *
 * @throws Error with what is wrong, if it is refused or there is no response
 */
export async function askSigned(what: 'url' | 'key', text: string): Promise<string> {
  const response = await fetch(`/explorer/signed.json?${new URLSearchParams({ [what]: text })}`);
  const { path, message, errors = [] } = await response.json();
  if (!response.ok) throw new Error(errors[0]?.message ?? message);
  return path;
}
