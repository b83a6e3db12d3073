import { formatPath, type MediaChoice } from './media-choice.ts';

/** Returns the key of a choice's original, which an attachment's signature covers. */
export function keyOf(choice: MediaChoice): string {
  return decodeURIComponent(formatPath(choice)).slice(1);
}

/** Refusal to sign; the message says why. */
export class SigningRefused extends Error {
  override readonly name = 'SigningRefused';
}

/**
 * Requests a signed path from the explorer: for the URL of another site, or for the key of an attachment.
 *
 * @throws SigningRefused; another Error without a response, or for one that is not the explorer's
 */
export async function askSigned(what: 'url' | 'key', text: string): Promise<string> {
  const response = await fetch(`/explorer/signed.json?${new URLSearchParams({ [what]: text })}`);
  const { path, message, errors = [] } = await response.json();
  if (!response.ok) throw new SigningRefused(errors[0]?.message ?? message);
  return path;
}
