import { z } from 'zod';
import { choice } from './setting-forms.ts';

/**
 * The forms of OpenTelemetry's variables, where they differ from those of our own: words in any case, and lists
 * of pairs (OpenTelemetry Specification, "Environment Variables").
 */

const PROPAGATORS = new Set(['tracecontext', 'baggage', 'none']);

/** The characters of a header's name (RFC 9110 §5.1) and of its value, without those beyond ASCII. */
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/;
const HEADER_VALUE = /^[\t\x20-\x7e]*$/;

type Pairs = Readonly<Record<string, string>>;

/** One of a few words, in upper or lower case. */
export const word = <const Words extends readonly [string, ...string[]]>(...words: Words) =>
  z
    .string()
    .trim()
    .toLowerCase()
    .pipe(choice(...words));

/** Which form of OTLP is spoken. */
export const otlpProtocol = z
  .string()
  .trim()
  .toLowerCase()
  .pipe(
    z.enum(['http/protobuf', 'http/json'], {
      error: 'http/protobuf or http/json, for OTLP over gRPC is not spoken here,',
    }),
  );

/** Where a collector listens. A key would end up in the log: headers are for that. */
export const collectorUrl = z
  .string()
  .refine(isCollectorUrl, { error: 'an http or https URL without query or credentials' });

/** Names and values of headers, the values encoded as in a URL where they have to be. */
export const headerPairs = z
  .string()
  .refine((text) => parseHeaderPairs(text) !== undefined, {
    error: 'name=value pairs of headers, separated by commas',
  })
  .transform((text) => parseHeaderPairs(text) ?? {});

/** Names and values of attributes, both encoded as in a URL where they have to be. */
export const attributePairs = z
  .string()
  .refine((text) => parseAttributePairs(text) !== undefined, {
    error: 'name=value pairs, separated by commas, with "," and "=" percent-encoded',
  })
  .transform((text) => parseAttributePairs(text) ?? {});

/** A share of all. */
export const ratio = z
  .string()
  .refine((text) => /^(\d+(\.\d*)?|\.\d+)(e-\d+)?$/i.test(text) && Number(text) <= 1, {
    error: 'a number from 0 to 1',
  })
  .transform(Number);

/** How traces come from one service to another: of the known ways, only one is taken here. */
export const propagatorList = z
  .string()
  .refine((text) => splitList(text).every((name) => PROPAGATORS.has(name)), {
    error: 'tracecontext, baggage or none',
  })
  .transform(splitList);

function splitList(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim().toLowerCase())
    .filter((item) => item !== '');
}

function isCollectorUrl(text: string): boolean {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  return username === '' && password === '' && !/[?#@]/.test(text);
}

function parseHeaderPairs(text: string): Pairs | undefined {
  const pairs = parsePairs(text, (value) => value);
  const isHeader = ([name, value]: [string, string]): boolean =>
    HEADER_NAME.test(name) && HEADER_VALUE.test(value);
  return pairs !== undefined && Object.entries(pairs).every(isHeader) ? pairs : undefined;
}

function parseAttributePairs(text: string): Pairs | undefined {
  return parsePairs(text, (value) => (value.includes('=') ? undefined : value));
}

/** `undefined` where one of them is no pair, or is encoded wrong. */
function parsePairs(text: string, check: (value: string) => string | undefined): Pairs | undefined {
  const pairs: Record<string, string> = {};
  for (const item of text.split(',')) {
    if (item.trim() === '') continue;
    const [, name, raw = ''] = /^([^=]+)=(.*)$/s.exec(item.trim()) ?? [];
    const value = check(raw.trim());
    if (name === undefined || value === undefined) return undefined;
    try {
      pairs[decodeURIComponent(name.trim())] = decodeURIComponent(value);
    } catch {
      return undefined;
    }
  }
  return pairs;
}
