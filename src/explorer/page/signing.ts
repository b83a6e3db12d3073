import { formatPath, type MediaChoice } from './media-choice.ts';

/** The key of a choice's original, which is what is signed of an attachment. */
export function keyOf(choice: MediaChoice): string {
  return decodeURIComponent(formatPath(choice)).slice(1);
}

/** What was to be signed is refused; the message says why. */
export class SigningRefused extends Error {
  override readonly name = 'SigningRefused';
}

/**
 * Asks the explorer for a signed path: of the URL of another site, or of the key of an attachment.
 *
 * @throws SigningRefused; another Error if there is no response, or one that is not the explorer's
 */
export async function askSigned(what: 'url' | 'key', text: string): Promise<string> {
  const response = await fetch(`/explorer/signed.json?${new URLSearchParams({ [what]: text })}`);
  const { path, message, errors = [] } = await response.json();
  if (!response.ok) throw new SigningRefused(errors[0]?.message ?? message);
  return path;
}
