import type { SigningKeys } from '../../contract/signing/signing-keys.ts';
import { type Environment, optional, type Setting, setting, type ValuesOf } from '../setting.ts';
import { choice, signingDomain, signingKeys, signingKeysFile } from '../setting-types.ts';

/** Contract §8 to §10. Each variable has a twin with the path of a file of keys. */
export const keySettingNames = [
  'EXTERNAL_SIGNING_KEYS',
  'ATTACHMENT_SIGNING_KEYS',
  'RELAY_SIGNING_KEYS',
] as const;

type KeySettingName = (typeof keySettingNames)[number];

type KeyRows<Name extends KeySettingName> = Readonly<
  Record<Name | `${Name}_FILE`, Setting<SigningKeys>>
>;

type KeyValues = Partial<Record<keyof KeyRows<KeySettingName>, SigningKeys | undefined>>;

export function keySettings<Name extends KeySettingName>(
  name: Name,
  description: string,
): KeyRows<Name> {
  const isSecret = true;
  return {
    [name]: optional(signingKeys, description, { isSecret }),
    [`${name}_FILE`]: optional(signingKeysFile, 'the same from a file', { isSecret }),
  } as KeyRows<Name>; // TypeScript types a computed name as any string
}

export function readKeys(values: KeyValues, name: KeySettingName): SigningKeys | undefined {
  return values[name] ?? values[`${name}_FILE`];
}

/** Whether a variable or its twin is set, even to an invalid value. */
export function hasKeys(environment: Environment, name: KeySettingName): boolean {
  return environment[name] !== undefined || environment[`${name}_FILE`] !== undefined;
}

/** Contract §9. */
export const attachmentTable = {
  ATTACHMENT_SIGNING: setting(
    choice('off', 'report', 'enforce'),
    'off',
    'whether URLs of attachments must be signed: `report` serves all URLs and counts the outcomes of the check in the metrics, `enforce` returns a 404 unless the signature is valid (docs/signing.md)',
  ),
  ...keySettings(
    'ATTACHMENT_SIGNING_KEYS',
    'signing keys of attachment URLs; required with `report` and `enforce`. Darkroom accepts signatures by all of them; `darkroom sign` uses the first',
  ),
  ATTACHMENT_SIGNING_DOMAIN: setting(
    signingDomain,
    'attachment-url-v1',
    "first line of the signed text; set it if your platform's signer already uses another line",
  ),
};

/** Keys may be set even with mode `off`. */
export function readAttachments(values: ValuesOf<typeof attachmentTable>) {
  const keys = readKeys(values, 'ATTACHMENT_SIGNING_KEYS');
  return {
    mode: values.ATTACHMENT_SIGNING,
    signing: keys && { keys, domain: values.ATTACHMENT_SIGNING_DOMAIN },
  };
}
