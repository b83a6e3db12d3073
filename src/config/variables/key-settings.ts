import type { SigningKeys } from '../../contract/signing/signing-keys.ts';
import { type Environment, optional, type Setting } from '../setting.ts';
import { signingKeys, signingKeysFile } from '../setting-forms.ts';

/** Every variable of signing keys (contract §8 to §10); each has a twin that names a file of them. */
export const keySettingNames = [
  'EXTERNAL_SIGNING_KEYS',
  'ATTACHMENT_SIGNING_KEYS',
  'RELAY_SIGNING_KEYS',
] as const;

/** The name of a variable of signing keys. */
type KeySettingName = (typeof keySettingNames)[number];

/** The rows of one of them, or of several. */
type KeyRows<Name extends KeySettingName> = Readonly<
  Record<Name | `${Name}_FILE`, Setting<SigningKeys>>
>;

/** What they were read as; only some are there where only those are asked for. */
type KeyValues = Partial<Record<keyof KeyRows<KeySettingName>, SigningKeys | undefined>>;

/**
 * The rows of a variable of keys and of its twin.
 *
 * @param description what the keys are for, in Markdown
 */
export function keySettings<Name extends KeySettingName>(
  name: Name,
  description: string,
): KeyRows<Name> {
  const isSecret = true;
  return {
    [name]: optional(signingKeys, description, { isSecret }),
    [`${name}_FILE`]: optional(signingKeysFile, 'the same from a file', { isSecret }),
  } as KeyRows<Name>; // a computed name is any text to the compiler
}

/** The keys that a variable or its twin has; `undefined` where neither is set. */
export function readKeys(values: KeyValues, name: KeySettingName): SigningKeys | undefined {
  return values[name] ?? values[`${name}_FILE`];
}

/** Whether a variable or its twin is set, to whatever it may be. */
export function hasKeys(given: Environment, name: KeySettingName): boolean {
  return given[name] !== undefined || given[`${name}_FILE`] !== undefined;
}
