import type { MediaChoice } from './media-choice.ts';

/** A path that is signed, or why it is not. */
export type Signed =
  | { readonly kind: 'path'; readonly path: string }
  | { readonly kind: 'refused'; readonly message: string };

/** The key of a choice's original, which is what is signed of an attachment. */
export function keyOf({ resource, values }: MediaChoice): string {
  const key = resource.template.replace(/\{(\w+)\}/g, (_, name: string) => values[name] ?? '');
  return key.slice(1);
}

/**
 * Asks the explorer to sign: the URL of another site, or the key of an attachment.
 *
 * @throws TypeError if there was no response
 */
export async function askSigned(what: 'url' | 'key', text: string): Promise<Signed> {
  const response = await fetch(`/explorer/signed.json?${new URLSearchParams({ [what]: text })}`);
  const { path, message, errors = [] } = await response.json();
  if (response.ok) return { kind: 'path', path };
  return { kind: 'refused', message: errors[0]?.message ?? message };
}
