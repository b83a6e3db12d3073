import { setting, type ValuesOf } from '../setting.ts';
import { choice, signingDomain } from '../setting-forms.ts';
import { keySettings, readKeys } from './key-settings.ts';

/** Variables of signed attachments: contract §9. */
export const attachmentTable = {
  ATTACHMENT_SIGNING: setting(
    choice('off', 'report', 'enforce'),
    'off',
    'whether the URLs of attachments must be signed: `report` serves all of them and counts what they are, `enforce` shows nothing but a 404 to those that are not valid (docs/signing.md)',
  ),
  ...keySettings(
    'ATTACHMENT_SIGNING_KEYS',
    'what signs the URLs of attachments, needed with `report` and `enforce`: the first key signs, all are accepted',
  ),
  ATTACHMENT_SIGNING_DOMAIN: setting(
    signingDomain,
    'attachment-url-v1',
    'the first line of what is signed, for a platform that has a signer already',
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
