import type { SigningKeys } from '../../contract/signing/signing-keys.ts';
import { type Environment, optional, type Setting } from '../setting.ts';
import { signingKeys, signingKeysFile } from '../setting-forms.ts';

/** Variables of signing keys (contract §8 to §10); each has a twin that names a file of keys. */
export const keySettingNames = [
  'EXTERNAL_SIGNING_KEYS',
  'ATTACHMENT_SIGNING_KEYS',
  'RELAY_SIGNING_KEYS',
] as const;

type KeySettingName = (typeof keySettingNames)[number];

/** Rows of one or several variables of keys. */
type KeyRows<Name extends KeySettingName> = Readonly<
  Record<Name | `${Name}_FILE`, Setting<SigningKeys>>
>;

/** Values of some or all of these variables. */
type KeyValues = Partial<Record<keyof KeyRows<KeySettingName>, SigningKeys | undefined>>;

/** Returns the rows of a variable of keys and of its twin. */
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

/** Returns the keys of a variable or of its twin; `undefined` if neither is set. */
export function readKeys(values: KeyValues, name: KeySettingName): SigningKeys | undefined {
  return values[name] ?? values[`${name}_FILE`];
}

/** Whether a variable or its twin is set, even to an invalid value. */
export function hasKeys(given: Environment, name: KeySettingName): boolean {
  return given[name] !== undefined || given[`${name}_FILE`] !== undefined;
}
