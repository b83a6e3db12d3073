import type { Environment } from './setting.ts';
import { settingNames } from './settings.ts';

/** A variable that looks like one of ours, and is none. */
interface UnknownSetting {
  readonly name: string;
  /** The known name that is nearest, if one is near. */
  readonly meant: string | undefined;
}

/** First words of our names that are those of other programs, too, and names that others set. */
const COMMON_WORDS = new Set(
  'DEFAULT EXTERNAL HOST LOG MAX MEDIA NODE NOT OTEL PORT TRUST WORKER WORKERS'.split(' '),
);

/** A shorter name is near to too many others: HOME to HOST, SORT to PORT. */
const MIN_LENGTH = 7;

/** Letters that are wrong, missing or too many in a name that was mistyped. */
const MAX_TYPING_ERRORS = 2;

/**
 * Variables that were set for this service, by their first word or by their likeness to a name of ours, and
 * that it does not read. Those of the AWS SDK, of OpenTelemetry and of Node are theirs to judge.
 */
export function findUnknownSettings(environment: Environment): readonly UnknownSetting[] {
  const known = new Set<string>(settingNames);
  const ownWords = new Set(settingNames.map(firstWordOf).filter((word) => !COMMON_WORDS.has(word)));
  return Object.keys(environment).flatMap((name) => {
    if (known.has(name) || /^(AWS|OTEL|NODE)_/.test(name)) return [];
    const meant = findNearest(name);
    return meant !== undefined || (name.includes('_') && ownWords.has(firstWordOf(name)))
      ? [{ name, meant }]
      : [];
  });
}

/** What to say of one. */
export function describeUnknownSetting({ name, meant }: UnknownSetting): string {
  const hint = meant === undefined ? '' : `; is ${meant} meant?`;
  return `${name} is no setting of Darkroom${hint}`;
}

function firstWordOf(name: string): string {
  return name.split('_')[0] ?? name;
}

function findNearest(name: string): string | undefined {
  if (name.length < MIN_LENGTH) return undefined;
  const candidates = settingNames
    .filter((known) => known.length >= MIN_LENGTH)
    .map((known) => ({ known, errors: countTypingErrors(name, known) }))
    .filter(({ errors }) => errors <= MAX_TYPING_ERRORS)
    .sort((a, b) => a.errors - b.errors);
  return candidates[0]?.known;
}

/** The Levenshtein distance. */
function countTypingErrors(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [row, letter] of [...a].entries()) {
    const current = [row + 1];
    for (const [column, other] of [...b].entries()) {
      const replaced = (previous[column] ?? 0) + Number(letter !== other);
      const removed = (previous[column + 1] ?? 0) + 1;
      current.push(Math.min(replaced, removed, (current[column] ?? 0) + 1));
    }
    previous = current;
  }
  return previous[b.length] ?? 0;
}
