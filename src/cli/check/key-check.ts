import type { Config } from '../../config/config.ts';
import type { SigningKeys } from '../../contract/signing/signing-keys.ts';
import { type Finding, ok } from './finding.ts';

/** How many signing keys there are, of each kind that is set; never what they are. */
export function* checkKeys({ external, attachments, relay }: Config): Generator<Finding> {
  if (external !== undefined) yield ok('external keys', describeSigners(external.keys));
  const { mode, signing } = attachments;
  if (signing !== undefined) {
    yield ok('attachment keys', `${describeSigners(signing.keys)} (ATTACHMENT_SIGNING=${mode})`);
  }
  // The platform alone signs uploads.
  if (relay !== undefined) yield ok('upload keys', `any of ${relay.keys.count} verifies`);
}

function describeSigners({ count }: SigningKeys): string {
  return count > 1 ? `the first signs; ${count - 1} more verify` : 'the first signs';
}
