/** HTTP dates (RFC 9110 §5.6.7), in whole seconds. */

const DAY = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)';
const LONG_DAY = '(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day';
const MONTH = '(?<month>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)';
const TIME = '(?<hour>[01]\\d|2[0-3]):(?<minute>[0-5]\\d):(?<second>[0-5]\\d|60)';

const MONTHS = 'JanFebMarAprMayJunJulAugSepOctNovDec';

const FORMS = [
  // IMF-fixdate: Sun, 06 Nov 1994 08:49:37 GMT
  new RegExp(`^${DAY}, (?<day>\\d{2}) ${MONTH} (?<year>\\d{4}) ${TIME} GMT$`),
  // RFC 850, obsolete: Sunday, 06-Nov-94 08:49:37 GMT
  new RegExp(`^${LONG_DAY}, (?<day>\\d{2})-${MONTH}-(?<shortYear>\\d{2}) ${TIME} GMT$`),
  // asctime, obsolete: Sun Nov  6 08:49:37 1994
  new RegExp(`^${DAY} ${MONTH} (?<day>[ \\d]\\d) ${TIME} (?<year>\\d{4})$`),
];

/**
 * Parses an HTTP date in any of its three forms (RFC 9110 §5.6.7); returns `undefined` if the text has none of them, or
 * names a day that its month does not have. Case and white space must be exact, as in the grammar. Any day of the week
 * will do: it says nothing that the date does not.
 *
 * @param now places the two-digit years of the RFC 850 form: never more than 50 years ahead
 */
export function parseHttpDate(text: string, now: Date = new Date()): Date | undefined {
  for (const form of FORMS) {
    const groups = form.exec(text)?.groups;
    if (groups === undefined) continue;
    const { year, shortYear } = groups;
    if (year !== undefined) return toDate(Number(year), groups);

    const limit = new Date(now);
    limit.setUTCFullYear(now.getUTCFullYear() + 50);
    const century = Math.floor(limit.getUTCFullYear() / 100) * 100;
    const candidate = toDate(century + Number(shortYear), groups);
    return candidate !== undefined && candidate <= limit
      ? candidate
      : toDate(century - 100 + Number(shortYear), groups);
  }
  return undefined;
}

function toDate(year: number, groups: Record<string, string>): Date | undefined {
  const { month = '', day, hour, minute, second } = groups;
  const date = new Date(0);
  // Not Date.UTC, which takes the years 0 to 99 for 1900 to 1999.
  date.setUTCFullYear(year, MONTHS.indexOf(month) / 3, Number(day));
  if (date.getUTCDate() !== Number(day)) return undefined; // 30 Feb has rolled over to March
  date.setUTCHours(Number(hour), Number(minute), Number(second));
  return date;
}

/**
 * Formats a date as IMF-fixdate, the only form that a sender may use (RFC 9110 §5.6.7), without fractions of a second.
 *
 * @throws RangeError if the date is invalid, or outside the years 0 to 9999
 */
export function formatHttpDate(date: Date): string {
  const year = date.getUTCFullYear();
  if (!(year >= 0 && year <= 9999)) {
    throw new RangeError(`Expected a date in the years 0 to 9999 but received ${date.getTime()}`);
  }
  return date.toUTCString();
}
