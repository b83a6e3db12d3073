import type { Environment, Setting } from './setting.ts';
import { type SettingName, settingNames, settingTable } from './settings.ts';

export interface SettingWarning {
  readonly name: string;
  readonly message: string;
}

/** First words that variables of other programs also have. */
const COMMON_WORDS = /^(DEFAULT|EXTERNAL|HOST|LOG|MAX|MEDIA|NODE|NOT|OTEL|PORT|TRUST|WORKERS?)$/;

/** Shorter names resemble too many others: HOME and HOST, SORT and PORT. */
const MIN_LENGTH = 7;

/** Finds variables that share their first word with settings, or differ by one typing error. */
export function findUnknownSettings(environment: Environment): readonly SettingWarning[] {
  const known: readonly string[] = settingNames;
  return Object.keys(environment).flatMap((name) => {
    if (known.includes(name) || /^(AWS|OTEL|NODE)_/.test(name)) return [];
    const meant = known.find((setting) => isMistyped(name, setting));
    const [word = '', ...rest] = name.split('_');
    const isOurs = known.some((setting) => setting.startsWith(`${word}_`));
    if (meant === undefined && (rest.length === 0 || !isOurs || COMMON_WORDS.test(word))) return [];
    const hint = meant === undefined ? '' : `; did you mean ${meant}?`;
    return [{ name, message: `${name} is not a setting of Darkroom${hint}` }];
  });
}

/** Settings that have an effect only with another one, or with a certain value of it. */
const dependentSettings: readonly (readonly [SettingName, SettingName, string?])[] = [
  ['RESULT_STORE_DIR', 'RESULT_STORE', 'filesystem'],
  ['RESULT_S3_BUCKET', 'RESULT_STORE', 's3'],
  ['BLOCKLIST_FILE', 'BLOCKLIST', 'filesystem'],
  ['BLOCKLIST_S3_BUCKET', 'BLOCKLIST', 's3'],
  ['EDGE_ZONE', 'EDGE'],
  ['ADMIN_TOKEN', 'ADMIN_PORT'],
  ['INTERNAL_TOKEN', 'INTERNAL_PORT'],
];

/** Finds settings such as the directory of a disabled result store. */
export function findUnusedSettings(environment: Environment): readonly SettingWarning[] {
  return dependentSettings.flatMap(([name, other, needed]) => {
    const row: Setting = settingTable[other];
    const value = environment[other] ?? row.default;
    const isUsed = needed === undefined ? value !== undefined : value === needed;
    if (environment[name] === undefined || isUsed) return [];
    const state = value === undefined ? 'not set' : String(value);
    return [{ name, message: `${name} has no effect while ${other} is ${state}` }];
  });
}

/** Whether two names differ by a final S, or in one place by at most two letters. */
function isMistyped(name: string, meant: string): boolean {
  if (`${name}S` === meant || name === `${meant}S`) return true;
  const shorter = Math.min(name.length, meant.length);
  let start = 0;
  while (start < shorter && name[start] === meant[start]) start += 1;
  let end = 0;
  while (end < shorter - start && name.at(-1 - end) === meant.at(-1 - end)) end += 1;
  return shorter >= MIN_LENGTH && Math.max(name.length, meant.length) - start - end <= 2;
}
