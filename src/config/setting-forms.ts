import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { canonicalHostOf, type PublicUrl, parsePublicUrl } from '../contract/external-url.ts';
import { MIN_KEY_BYTES, SigningKeys } from '../contract/signing/signing-keys.ts';

/** Syntax of a variable: parses its text into a value. */
export interface Form<Value> {
  /** Description, as in "expected … but received …". */
  readonly expected: string;
  /** Returns `undefined` for invalid text. */
  read(text: string): Value | undefined;
  /** Formats a value for the documents. Omit to use its text. */
  format?(value: Value): string;
}

function textForm(expected: string, isValid: (text: string) => boolean): Form<string> {
  return { expected, read: (text) => (isValid(text) ? text : undefined) };
}

/** Accepts any text; `setting-faults.ts` or an SDK checks what is expected. */
export const anyText = (expected: string): Form<string> => textForm(expected, () => true);

export function integer(min: number, max: number, unit = ''): Form<number> {
  return {
    expected: `an integer from ${min} to ${max}${unit === '' ? '' : ` (${unit})`}`,
    read: (text) => {
      const isValid = /^\d{1,15}$/.test(text) && Number(text) >= min && Number(text) <= max;
      return isValid ? Number(text) : undefined;
    },
  };
}

export const milliseconds = integer(1, 600_000, 'milliseconds');

export const seconds = integer(0, 31_536_000, 'seconds');

export const MEBIBYTE = 2 ** 20;

const sizeUnits = { KiB: 2 ** 10, MiB: MEBIBYTE, GiB: 2 ** 30 } as const;

/** Accepts a size in bytes, KiB, MiB or GiB. */
export function bytes(min: number, max = 2 ** 40): Form<number> {
  return {
    expected: `a size from ${formatSize(min)} to ${formatSize(max)} (in bytes, or with KiB, MiB or GiB)`,
    read: (text) => {
      const [, digits, unit] = /^(\d{1,15})(KiB|MiB|GiB)?$/.exec(text) ?? [];
      const size =
        Number(digits) * (unit === undefined ? 1 : sizeUnits[unit as keyof typeof sizeUnits]);
      return size >= min && size <= max ? size : undefined;
    },
    format: formatSize,
  };
}

/** Formats a size in the largest unit of which it is a multiple. */
function formatSize(size: number): string {
  const units = Object.entries(sizeUnits).reverse();
  const [name, unit] = units.find((each) => size > 0 && size % each[1] === 0) ?? ['', 1];
  return `${size / unit}${name}`;
}

export function choice<const Word extends string>(...words: readonly Word[]): Form<Word> {
  const isMany = words.length > 3;
  return {
    expected: isMany ? `one of ${words.join(', ')}` : words.join(' or '),
    read: (text) => words.find((word) => word === text),
  };
}

export const programChoice = (...words: readonly string[]): Form<string> =>
  textForm(
    `${words.join(', ')} or an absolute path`,
    (text) => words.includes(text) || (text.startsWith('/') && !text.includes('\0')),
  );

/** A header value; an empty one omits the header. */
export const headerValue = textForm(
  'printable ASCII without spaces around it, or nothing',
  (text) => /^(?:[!-~](?:[ -~]{0,510}[!-~])?)?$/.test(text),
);

export const directory = anyText('an existing directory');

export const hostName = textForm(
  'an IP address or a host name',
  (text) => isIP(text) !== 0 || (/^[a-z\d.-]{1,253}$/i.test(text) && /[a-z]/i.test(text)),
);

export const bearerToken = textForm('at least 16 characters of A-Z a-z 0-9 . _ ~ + / = -', (text) =>
  /^[\w.~+/=-]{16,512}$/.test(text),
);

export const readableFile = textForm('a readable file', isReadableFile);

/** Proxies whose `X-Forwarded-For` is trusted: all, none, or these addresses and networks. */
export const proxyList: Form<boolean | string[]> = {
  expected: 'true, false, or a comma-separated list of addresses or networks',
  read: (text) => {
    if (text === 'true' || text === 'false') return text === 'true';
    const list = text.split(/\s*,\s*/);
    return list.every(isNetwork) ? list : undefined;
  },
};

/** Name of a bucket, ARN of an access point, or `tenant:bucket` of Ceph. */
export const bucketName = textForm('the name of a bucket', (text) => /^[\w.:-]{1,255}$/.test(text));

export const regionName = textForm('the name of a region', (text) => /^[\w-]{1,64}$/.test(text));

export const endpoint = textForm(
  'an http or https URL without path, query or credentials',
  (text) => {
    if (!/^https?:\/\//.test(text) || !URL.canParse(text)) return false;
    const { origin, href } = new URL(text);
    return href === `${origin}/` && !/[?#@]/.test(text);
  },
);

export const pageAddress = textForm(
  'an http or https URL',
  (text) => /^https?:\/\/[!#-;=?-~]+$/.test(text) && text.length <= 2_048 && URL.canParse(text),
);

/** Base URL of an API, without a final slash. */
export const baseUrl: Form<string> = {
  expected: 'an http or https URL without query or credentials',
  read: (text) => {
    if (!/^https?:\/\/[^?#@\s]+$/.test(text) || !URL.canParse(text)) return undefined;
    return new URL(text).href.replace(/\/$/, '');
  },
};

/** Token for a request header, long enough to be redacted in the log. */
export const apiToken = textForm(
  'at least 8 printable characters of ASCII without spaces',
  (text) => /^[!-~]{8,512}$/.test(text),
);

/** Accepts the path of a UTF-8 file, which is read once, at startup. */
function fileOf<Value>(contents: string, parse: (text: string) => Value | undefined): Form<Value> {
  return {
    expected: `a readable file of ${contents}`,
    read: (path) => {
      try {
        return parse(new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path)));
      } catch {
        return undefined; // missing, not readable, or not UTF-8
      }
    },
  };
}

export const apiTokenFile = fileOf(apiToken.expected, (text) => apiToken.read(text.trim()));

export const serviceId = textForm('an id of A-Z a-z 0-9 _ -', (text) =>
  /^[\w-]{1,128}$/.test(text),
);

const eachKey = `each a text or base64:…, of ${MIN_KEY_BYTES} bytes at least`;

/** Keys that sign URLs; white space around a key is ignored. */
export const signingKeys: Form<SigningKeys> = {
  expected: `one key or several, separated by commas, ${eachKey}`,
  read: (text) => readKeys(text.split(',')),
};

export const signingKeysFile = fileOf(`keys, one per line, ${eachKey}`, (text) =>
  readKeys(text.split('\n').filter((line) => line.trim() !== '')),
);

function readKeys(items: readonly string[]): SigningKeys | undefined {
  try {
    return new SigningKeys(items.map((item) => item.trim()));
  } catch {
    return undefined;
  }
}

/** First line of a signed message, which separates the uses of a key. */
export const signingDomain = textForm(
  'a text of one line, 256 bytes at most',
  (text) => Buffer.byteLength(text) <= 256 && !/\p{Cc}/u.test(text),
);

export function listOf<Value>(form: Form<Value>): Form<readonly Value[]> {
  return {
    expected: `a comma-separated list, each item ${form.expected}`,
    read: (text) => {
      const values = text.split(',').map((item) => form.read(item.trim()));
      return values.every((value) => value !== undefined) ? values : undefined;
    },
  };
}

export const network = textForm('an address or a network', isNetwork);

/** A NAT64 prefix; RFC 6052 §2.2 allows only these lengths. */
export const nat64Prefix = textForm(
  'an IPv6 network of 32, 40, 48, 56, 64 or 96 bits',
  (text) => isNetwork(text) && /:.*\/(?:32|40|48|56|64|96)$/.test(text),
);

/** A DNS server, in the format of `dns.Resolver`. */
export const dnsServer = textForm(
  'an address, with a port or without (192.0.2.1:53, [2001:db8::1]:53)',
  (text) => {
    const [, addressV6, addressV4, port = '53'] =
      /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
    const isPort = Number(port) >= 1 && Number(port) <= 65_535;
    return isIP(text) !== 0 || (isPort && isIP(addressV6 ?? addressV4 ?? '') !== 0);
  },
);

/** A site: its address, or its host name in the format of the URL parser. */
export const siteName: Form<string> = {
  expected: 'a host name or an address',
  read: canonicalHostOf,
};

export const publicUrl: Form<PublicUrl> = {
  expected: 'an http or https URL without query or credentials',
  read: parsePublicUrl,
};

export const fileBelow = textForm(
  'names joined by "/", not "." or "..", 512 bytes at most',
  (text) =>
    Buffer.byteLength(text) <= 512 &&
    text.split('/').every((name) => !['', '.', '..'].includes(name)),
);

/** Prefix of every key, ending in `/`. Leaves room for the longest key (contract §1) in S3's 1024 bytes. */
export const keyPrefix: Form<string> = {
  expected: fileBelow.expected,
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
