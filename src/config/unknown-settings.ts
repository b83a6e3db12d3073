import type { Environment } from './setting.ts';
import { settingNames } from './settings.ts';

/** First words of our names that other programs use, too. */
const COMMON_WORDS = /^(DEFAULT|EXTERNAL|HOST|LOG|MAX|MEDIA|NODE|NOT|OTEL|PORT|TRUST|WORKERS?)$/;

/** Shorter names are near to too many others: HOME to HOST, SORT to PORT. */
const MIN_LENGTH = 7;

/**
 * Finds variables that look like settings by their first word or by one typing error. Those of the AWS SDK, of
 * OpenTelemetry and of Node are theirs to judge.
 */
export function findUnknownSettings(environment: Environment) {
  const known: readonly string[] = settingNames;
  return Object.keys(environment).flatMap((name) => {
    if (known.includes(name) || /^(AWS|OTEL|NODE)_/.test(name)) return [];
    const meant = known.find((setting) => isMistyped(name, setting));
    const [word = '', ...rest] = name.split('_');
    const isOurs = known.some((setting) => setting.startsWith(`${word}_`));
    if (meant === undefined && (rest.length === 0 || !isOurs || COMMON_WORDS.test(word))) return [];
    const hint = meant === undefined ? '' : `; is ${meant} meant?`;
    return [{ name, message: `${name} is not a setting of Darkroom${hint}` }];
  });
}

/** Whether two names differ in one place, by at most two letters. */
function isMistyped(name: string, meant: string): boolean {
  const shorter = Math.min(name.length, meant.length);
  let start = 0;
  while (start < shorter && name[start] === meant[start]) start += 1;
  let end = 0;
  while (end < shorter - start && name.at(-1 - end) === meant.at(-1 - end)) end += 1;
  return shorter >= MIN_LENGTH && Math.max(name.length, meant.length) - start - end <= 2;
}
