import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { z } from 'zod';

/**
 * The forms that settings take: one zod schema each, from the text of a variable to its value. The
 * error of a schema is the form in words, as in "expected … but received …".
 */

/** An integer within bounds, both included. */
export const integer = (min: number, max: number, unit: string, fallback: number) =>
  z
    .string()
    .refine((text) => /^\d{1,15}$/.test(text) && Number(text) >= min && Number(text) <= max, {
      error: `an integer from ${min} to ${max}${unit === '' ? '' : ` (${unit})`}`,
    })
    .transform(Number)
    .default(fallback);

/** A time, at most ten minutes. */
export const milliseconds = (fallback: number) => integer(1, 600_000, 'milliseconds', fallback);

/** A time, 0 included. */
export const seconds = (max: number, fallback: number) => integer(0, max, 'seconds', fallback);

/** A size, at most 1 TiB. */
export const bytes = (min: number, fallback: number) => integer(min, 2 ** 40, 'bytes', fallback);

/** One of a few words. */
export const choice = <const Words extends readonly [string, ...string[]]>(...words: Words) =>
  z.enum(words, { error: words.join(' or ') });

/** An address to listen on, or a name that stands for one. */
export const hostName = z
  .string()
  .refine((text) => isIP(text) !== 0 || (/^[a-z\d.-]{1,253}$/i.test(text) && /[a-z]/i.test(text)), {
    error: 'an IP address or a host name',
  });

/** A secret that is sent in a header. */
export const bearerToken = z.string().regex(/^[\w.~+/=-]{16,512}$/, {
  error: 'at least 16 characters of A-Z a-z 0-9 . _ ~ + / = -',
});

/** A file that can be read. */
export const readableFile = z.string().refine(isReadableFile, { error: 'a readable file' });

/** Whom to believe about where a request came from. */
export const proxyList = z.string().refine(isProxyList, {
  error: 'true, false, or a comma-separated list of addresses or networks',
});

/** The name of a bucket; also the ARN of an access point, or `tenant:bucket` of Ceph. */
export const bucketName = z.string().regex(/^[\w.:-]{1,255}$/, { error: 'the name of a bucket' });

/** The name of a region, as the server calls its own. */
export const regionName = z.string().regex(/^[\w-]{1,64}$/, { error: 'the name of a region' });

/** Scheme, host and port of a server. */
export const endpoint = z
  .string()
  .refine(isEndpoint, { error: 'an http or https URL without path, query or credentials' });

/**
 * What stands before every key; empty, or ending in `/`. Its bound leaves room for the longest key of
 * spec §1 within the 1 024 bytes of S3.
 */
export const keyPrefix = z
  .string()
  .refine(isKeyPrefix, { error: 'names joined by "/", not "." or "..", 512 bytes at most' })
  .transform((text) => (text.endsWith('/') ? text : `${text}/`));

/** The value of a valid `proxyList`, as Fastify takes it. */
export function parseProxyList(text: string): boolean | string[] {
  return text === 'true' || text === 'false' ? text === 'true' : text.split(/\s*,\s*/);
}

export function isReadableFile(path: string): boolean {
  try {
    readFileSync(path);
    return true;
  } catch {
    return false;
  }
}

function isProxyList(text: string): boolean {
  const list = parseProxyList(text);
  return (
    typeof list === 'boolean' ||
    list.every((item) => {
      const [address = '', prefix, ...rest] = item.split('/');
      const bits = isIP(address) === 6 ? 128 : 32;
      const isPrefix = prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits);
      return isIP(address) !== 0 && isPrefix && rest.length === 0;
    })
  );
}

function isEndpoint(text: string): boolean {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text)) return false;
  const { origin, href } = new URL(text);
  return href === `${origin}/` && !/[?#@]/.test(text);
}

function isKeyPrefix(text: string): boolean {
  const names = text.replace(/\/$/, '').split('/');
  return Buffer.byteLength(text) <= 512 && names.every((name) => !['', '.', '..'].includes(name));
}
