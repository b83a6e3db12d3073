import { setting, type ValuesOf } from '../setting.ts';
import { choice, signingDomain } from '../setting-forms.ts';
import { keySettings, readKeys } from './key-settings.ts';

/** Variables of signed attachments: contract §9. */
export const attachmentTable = {
  ATTACHMENT_SIGNING: setting(
    choice('off', 'report', 'enforce'),
    'off',
    'whether URLs of attachments must be signed: `report` serves all and counts the verdicts, `enforce` sends a 404 unless the signature is valid (docs/signing.md)',
  ),
  ...keySettings(
    'ATTACHMENT_SIGNING_KEYS',
    'keys of attachment URLs, needed with `report` and `enforce`: the first one signs, all verify',
  ),
  ATTACHMENT_SIGNING_DOMAIN: setting(
    signingDomain,
    'attachment-url-v1',
    'first line of the signed text, for a platform that has a signer already',
  ),
};

/** Reads whether attachment URLs must be signed, and with which keys, which may be set before that. */
export function readAttachments(values: ValuesOf<typeof attachmentTable>) {
  const keys = readKeys(values, 'ATTACHMENT_SIGNING_KEYS');
  return {
    mode: values.ATTACHMENT_SIGNING,
    signing: keys && { keys, domain: values.ATTACHMENT_SIGNING_DOMAIN },
  };
}
