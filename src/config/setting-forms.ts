import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { canonicalHostOf, type PublicUrl, parsePublicUrl } from '../contract/external-url.ts';
import { MIN_KEY_BYTES, SigningKeys } from '../contract/signing/signing-keys.ts';

/** A form of settings: parses the text of a variable into its value. */
export interface Form<Value> {
  /** Description of the form, as in "expected … but received …". */
  readonly words: string;
  /** Returns `undefined` if the text has another form. */
  read(text: string): Value | undefined;
  /** Formats a value for the documents; omit to use its text. */
  format?(value: Value): string;
}

function texts(words: string, isValid: (text: string) => boolean): Form<string> {
  return { words, read: (text) => (isValid(text) ? text : undefined) };
}

/** Accepts any text; `words` describe what later code checks. */
export const anyText = (words: string): Form<string> => texts(words, () => true);

/** Accepts an integer within inclusive bounds. */
export function integer(min: number, max: number, unit = ''): Form<number> {
  return {
    words: `an integer from ${min} to ${max}${unit === '' ? '' : ` (${unit})`}`,
    read: (text) => {
      const isValid = /^\d{1,15}$/.test(text) && Number(text) >= min && Number(text) <= max;
      return isValid ? Number(text) : undefined;
    },
  };
}

/** A duration of at most ten minutes. */
export const milliseconds = integer(1, 600_000, 'milliseconds');

/** A duration of at most a year, 0 included. */
export const seconds = integer(0, 31_536_000, 'seconds');

/** Unit of most default sizes, in bytes. */
export const MEBIBYTE = 2 ** 20;

const sizeUnits = { KiB: 2 ** 10, MiB: MEBIBYTE, GiB: 2 ** 30 } as const;

/** Accepts a size of at most 1 TiB: an integer of bytes, or of KiB, MiB or GiB. */
export function bytes(min: number, max = 2 ** 40): Form<number> {
  return {
    words: `a size from ${formatSize(min)} to ${formatSize(max)} (in bytes, or with KiB, MiB or GiB)`,
    read: (text) => {
      const [, digits, unit] = /^(\d{1,15})(KiB|MiB|GiB)?$/.exec(text) ?? [];
      const size =
        Number(digits) * (unit === undefined ? 1 : sizeUnits[unit as keyof typeof sizeUnits]);
      return size >= min && size <= max ? size : undefined;
    },
    format: formatSize,
  };
}

/** Formats a size in the largest unit of which it is a multiple, as the variables accept it. */
function formatSize(size: number): string {
  const units = Object.entries(sizeUnits).reverse();
  const [name, unit] = units.find((each) => size > 0 && size % each[1] === 0) ?? ['', 1];
  return `${size / unit}${name}`;
}

/** Accepts one of a few words. */
export function choice<const Word extends string>(...words: readonly Word[]): Form<Word> {
  const isMany = words.length > 3;
  return {
    words: isMany ? `one of ${words.join(', ')}` : words.join(' or '),
    read: (text) => words.find((word) => word === text),
  };
}

/** Accepts one of a few words, or the path of a program. */
export const programChoice = (...words: readonly string[]): Form<string> =>
  texts(
    `${words.join(', ')} or an absolute path`,
    (text) => words.includes(text) || (text.startsWith('/') && !text.includes('\0')),
  );

/** A header value, sent unchanged; if the value is empty, the header is not sent. */
export const headerValue = texts('printable ASCII without spaces around it, or nothing', (text) =>
  /^(?:[!-~](?:[ -~]{0,510}[!-~])?)?$/.test(text),
);

/** A path, which `setting-faults.ts` checks together with related settings. */
export const folder = anyText('an existing folder');

/** An address to listen on, or a host name for one. */
export const hostName = texts(
  'an IP address or a host name',
  (text) => isIP(text) !== 0 || (/^[a-z\d.-]{1,253}$/i.test(text) && /[a-z]/i.test(text)),
);

/** A secret for a request header. */
export const bearerToken = texts('at least 16 characters of A-Z a-z 0-9 . _ ~ + / = -', (text) =>
  /^[\w.~+/=-]{16,512}$/.test(text),
);

export const readableFile = texts('a readable file', isReadableFile);

/** Proxies whose `X-Forwarded-For` is trusted, as Fastify takes them. */
export const proxyList: Form<boolean | string[]> = {
  words: 'true, false, or a comma-separated list of addresses or networks',
  read: (text) => {
    if (text === 'true' || text === 'false') return text === 'true';
    const list = text.split(/\s*,\s*/);
    return list.every(isNetwork) ? list : undefined;
  },
};

/** The name of a bucket; also the ARN of an access point, or `tenant:bucket` of Ceph. */
export const bucketName = texts('the name of a bucket', (text) => /^[\w.:-]{1,255}$/.test(text));

/** Name of a region, as the server calls it. */
export const regionName = texts('the name of a region', (text) => /^[\w-]{1,64}$/.test(text));

/** Scheme, host and port of a server. */
export const endpoint = texts('an http or https URL without path, query or credentials', (text) => {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text)) return false;
  const { origin, href } = new URL(text);
  return href === `${origin}/` && !/[?#@]/.test(text);
});

/** Address of a page, as a `Link` header can have it. */
export const pageAddress = texts(
  'an http or https URL',
  (text) => /^https?:\/\/[!#-;=?-~]+$/.test(text) && text.length <= 2_048 && URL.canParse(text),
);

/** Base URL of an API; without the slash at its end. */
export const baseUrl: Form<string> = {
  words: 'an http or https URL without query or credentials',
  read: (text) => {
    if (!/^https?:\/\/[^?#@\s]+$/.test(text) || !URL.canParse(text)) return undefined;
    return new URL(text).href.replace(/\/$/, '');
  },
};

/** Token of an API, which stands in a header; long enough to be found in the log. */
export const apiToken = texts('at least 8 printable characters of ASCII without spaces', (text) =>
  /^[!-~]{8,512}$/.test(text),
);

/** Accepts a readable file in UTF-8, read once, at the start, whose text is parsed. */
function fileOf<Value>(contents: string, parse: (text: string) => Value | undefined): Form<Value> {
  return {
    words: `a readable file of ${contents}`,
    read: (path) => {
      try {
        return parse(new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path)));
      } catch {
        return undefined; // missing, not readable, or not UTF-8
      }
    },
  };
}

export const apiTokenFile = fileOf(apiToken.words, (text) => apiToken.read(text.trim()));

/** Id that a service has given. */
export const serviceId = texts('an id of A-Z a-z 0-9 _ -', (text) => /^[\w-]{1,128}$/.test(text));

const eachKey = `each a text or base64:…, of ${MIN_KEY_BYTES} bytes at least`;

/** Keys that sign what a URL permits, separated by commas; white space around a key is ignored. */
export const signingKeys: Form<SigningKeys> = {
  words: `one key or several, separated by commas, ${eachKey}`,
  read: (text) => readKeys(text.split(',')),
};

/** A file of signing keys; blank lines are ignored. */
export const signingKeysFile = fileOf(`keys, one a line, ${eachKey}`, (text) =>
  readKeys(text.split('\n').filter((line) => line.trim() !== '')),
);

function readKeys(items: readonly string[]): SigningKeys | undefined {
  try {
    return new SigningKeys(items.map((item) => item.trim()));
  } catch {
    return undefined;
  }
}

/** First line of a signed message, which separates signatures for one use from those for another. */
export const signingDomain = texts(
  'a text of one line, 256 bytes at most',
  (text) => Buffer.byteLength(text) <= 256 && !/\p{Cc}/u.test(text),
);

/** Accepts a comma-separated list of values of a form. */
export function listOf<Value>(form: Form<Value>): Form<readonly Value[]> {
  return {
    words: `a comma-separated list, each item ${form.words}`,
    read: (text) => {
      const values = text.split(',').map((item) => form.read(item.trim()));
      return values.every((value) => value !== undefined) ? values : undefined;
    },
  };
}

/** An address, or a network in CIDR notation. */
export const network = texts('an address or a network', isNetwork);

/** A prefix under which IPv6 addresses contain an IPv4 address; RFC 6052 §2.2 allows only these lengths. */
export const nat64Prefix = texts(
  'an IPv6 network of 32, 40, 48, 56, 64 or 96 bits',
  (text) => isNetwork(text) && /:.*\/(?:32|40|48|56|64|96)$/.test(text),
);

/** A DNS server, as `dns.Resolver` takes it. */
export const dnsServer = texts(
  'an address, with a port or without (192.0.2.1:53, [2001:db8::1]:53)',
  (text) => {
    const [, addressV6, addressV4, port = '53'] =
      /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
    const isPort = Number(port) >= 1 && Number(port) <= 65_535;
    return isIP(text) !== 0 || (isPort && isIP(addressV6 ?? addressV4 ?? '') !== 0);
  },
);

/** A site: its host name, as the URL parser writes it, or its address. */
export const siteName: Form<string> = {
  words: 'a host name or an address',
  read: canonicalHostOf,
};

/** A URL below which this service is reached. */
export const publicUrl: Form<PublicUrl> = {
  words: 'an http or https URL without query or credentials',
  read: parsePublicUrl,
};

/** Path of a file below a folder. */
export const fileBelow = texts(
  'names joined by "/", not "." or "..", 512 bytes at most',
  (text) =>
    Buffer.byteLength(text) <= 512 &&
    text.split('/').every((name) => !['', '.', '..'].includes(name)),
);

/** Prefix of every key; empty, or ending in `/`. Leaves room for the longest key (contract §1) in S3's 1024 bytes. */
export const keyPrefix: Form<string> = {
  words: fileBelow.words,
  read: (text) => {
    const path = fileBelow.read(text.replace(/\/$/, ''));
    return path !== undefined && Buffer.byteLength(text) <= 512 ? `${path}/` : undefined;
  },
};

export function isReadableFile(path: string): boolean {
  try {
    readFileSync(path);
    return true;
  } catch {
    return false;
  }
}

function isNetwork(text: string): boolean {
  const [address = '', prefix, ...rest] = text.split('/');
  const bits = isIP(address) === 6 ? 128 : 32;
  const isPrefix = prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits);
  return isIP(address) !== 0 && isPrefix && rest.length === 0;
}
