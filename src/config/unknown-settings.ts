import type { Environment } from './setting.ts';
import { settingNames } from './settings.ts';

/** A variable that looks like a setting, and is unknown. */
interface UnknownSetting {
  readonly name: string;
  /** The known name that is nearest, if one is near. */
  readonly meant: string | undefined;
}

/** First words of our names that other programs use, too. */
const COMMON_WORDS = /^(DEFAULT|EXTERNAL|HOST|LOG|MAX|MEDIA|NODE|NOT|OTEL|PORT|TRUST|WORKERS?)$/;

/** A shorter name is near to too many others: HOME to HOST, SORT to PORT. */
const MIN_LENGTH = 7;

/** Letters that are wrong, missing or too many in a name that was mistyped. */
const MAX_TYPING_ERRORS = 2;

/**
 * Finds variables that were set for this service, by their first word or by their likeness to a name of ours, and
 * that it does not read. Those of the AWS SDK, of OpenTelemetry and of Node are theirs to judge.
 */
export function findUnknownSettings(environment: Environment): readonly UnknownSetting[] {
  const known = settingNames as readonly string[];
  const isOurs = (name: string): boolean => {
    const [word = '', ...rest] = name.split('_');
    const hasOurWord = known.some((it) => it.startsWith(`${word}_`)) && !COMMON_WORDS.test(word);
    return rest.length > 0 && hasOurWord;
  };
  return Object.keys(environment).flatMap((name) => {
    if (known.includes(name) || /^(AWS|OTEL|NODE)_/.test(name)) return [];
    const isNear = (it: string): boolean =>
      Math.min(it.length, name.length) >= MIN_LENGTH && isMistyped(name, it, MAX_TYPING_ERRORS);
    const meant = known.find(isNear);
    return meant !== undefined || isOurs(name) ? [{ name, meant }] : [];
  });
}

/** Describes one for the log. */
export function describeUnknownSetting({ name, meant }: UnknownSetting): string {
  const hint = meant === undefined ? '' : `; is ${meant} meant?`;
  return `${name} is no setting of Darkroom${hint}`;
}

/** Whether so many letters, wrong, missing or too many, tell a text from another one (Levenshtein). */
function isMistyped(text: string, meant: string, errors: number): boolean {
  if (text === meant) return true;
  if (errors === 0) return false;
  let at = 0;
  while (text[at] !== undefined && text[at] === meant[at]) at += 1;
  const [rest, meantRest] = [text.slice(at), meant.slice(at)];
  return (
    isMistyped(rest.slice(1), meantRest.slice(1), errors - 1) ||
    isMistyped(rest.slice(1), meantRest, errors - 1) ||
    isMistyped(rest, meantRest.slice(1), errors - 1)
  );
}
