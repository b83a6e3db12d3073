import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { canonicalHostOf, type PublicUrl, parsePublicUrl } from '../contract/external-url.ts';
import { MIN_KEY_BYTES, SigningKeys } from '../contract/signing/signing-keys.ts';

/** Type of a variable, which parses its text into a value. */
export interface SettingType<Value> {
  readonly expected: string;
  /** Returns `undefined` for invalid text. */
  read(text: string): Value | undefined;
  /** For the documents. Omit to use the text of the value. */
  format?(value: Value): string;
}

function textType(expected: string, isValid: (text: string) => boolean): SettingType<string> {
  return { expected, read: (text) => (isValid(text) ? text : undefined) };
}

/** `setting-faults.ts` or an SDK checks what is expected. */
export const anyText = (expected: string): SettingType<string> => textType(expected, () => true);

export function integer(min: number, max: number, unit = ''): SettingType<number> {
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

export function bytes(min: number, max = 2 ** 40): SettingType<number> {
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

/** Uses the largest unit that divides the size. */
function formatSize(size: number): string {
  const units = Object.entries(sizeUnits).reverse();
  const [name, unit] = units.find((each) => size > 0 && size % each[1] === 0) ?? ['', 1];
  return `${size / unit}${name}`;
}

export function choice<const Word extends string>(...words: readonly Word[]): SettingType<Word> {
  const isMany = words.length > 3;
  return {
    expected: isMany ? `one of ${words.join(', ')}` : words.join(' or '),
    read: (text) => words.find((word) => word === text),
  };
}

export const programChoice = (...words: readonly string[]): SettingType<string> =>
  textType(
    `${words.join(', ')} or an absolute path`,
    (text) => words.includes(text) || (text.startsWith('/') && !text.includes('\0')),
  );

/** An empty value omits the header. */
export const headerValue = textType(
  'printable ASCII without leading or trailing spaces, or nothing',
  (text) => /^(?:[!-~](?:[ -~]{0,510}[!-~])?)?$/.test(text),
);

export const directory = anyText('an existing directory');

export const hostName = textType(
  'an IP address or a host name',
  (text) => isIP(text) !== 0 || (/^[a-z\d.-]{1,253}$/i.test(text) && /[a-z]/i.test(text)),
);

export const bearerToken = textType('at least 16 characters of A-Z a-z 0-9 . _ ~ + / = -', (text) =>
  /^[\w.~+/=-]{16,512}$/.test(text),
);

export const readableFile = textType('a readable file', isReadableFile);

/** Proxies whose `X-Forwarded-For` is trusted: all, none, or these addresses and networks. */
export const proxyList: SettingType<boolean | string[]> = {
  expected: 'true, false, or a comma-separated list of IP addresses and networks',
  read: (text) => {
    if (text === 'true' || text === 'false') return text === 'true';
    const list = text.split(/\s*,\s*/);
    return list.every(isNetwork) ? list : undefined;
  },
};

/** Name of a bucket, ARN of an access point, or `tenant:bucket` of Ceph. */
export const bucketName = textType('the name of a bucket', (text) => /^[\w.:-]{1,255}$/.test(text));

export const regionName = textType('the name of a region', (text) => /^[\w-]{1,64}$/.test(text));

export const endpoint = textType(
  'an http or https URL without path, query or credentials',
  (text) => {
    if (!/^https?:\/\//.test(text) || !URL.canParse(text)) return false;
    const { origin, href } = new URL(text);
    return href === `${origin}/` && !/[?#@]/.test(text);
  },
);

export const pageAddress = textType(
  'an http or https URL',
  (text) => /^https?:\/\/[!#-;=?-~]+$/.test(text) && text.length <= 2_048 && URL.canParse(text),
);

/** Without a trailing slash. */
export const baseUrl: SettingType<string> = {
  expected: 'an http or https URL without query or credentials',
  read: (text) => {
    if (!/^https?:\/\/[^?#@\s]+$/.test(text) || !URL.canParse(text)) return undefined;
    return new URL(text).href.replace(/\/$/, '');
  },
};

/** Long enough to be redacted in the log. */
export const apiToken = textType('at least 8 printable ASCII characters without spaces', (text) =>
  /^[!-~]{8,512}$/.test(text),
);

/** Path of a UTF-8 file, which is read once, at startup. */
function fileOf<Value>(
  contents: string,
  parse: (text: string) => Value | undefined,
): SettingType<Value> {
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

export const serviceId = textType('an id of A-Z a-z 0-9 _ -', (text) =>
  /^[\w-]{1,128}$/.test(text),
);

const eachKey = `each plain text or base64:…, at least ${MIN_KEY_BYTES} bytes long`;

/** White space around a key is ignored. */
export const signingKeys: SettingType<SigningKeys> = {
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
export const signingDomain = textType(
  'one line of text, at most 256 bytes long',
  (text) => Buffer.byteLength(text) <= 256 && !/\p{Cc}/u.test(text),
);

export function listOf<Value>(type: SettingType<Value>): SettingType<readonly Value[]> {
  return {
    expected: `a comma-separated list, each item ${type.expected}`,
    read: (text) => {
      const values = text.split(',').map((item) => type.read(item.trim()));
      return values.every((value) => value !== undefined) ? values : undefined;
    },
  };
}

export const network = textType('an IP address or a network', isNetwork);

/** RFC 6052 §2.2 allows only these lengths. */
export const nat64Prefix = textType(
  'an IPv6 network of 32, 40, 48, 56, 64 or 96 bits',
  (text) => isNetwork(text) && /:.*\/(?:32|40|48|56|64|96)$/.test(text),
);

/** In the format of `dns.Resolver`. */
export const dnsServer = textType(
  'an IP address, optionally with a port (192.0.2.1:53, [2001:db8::1]:53)',
  (text) => {
    const [, addressV6, addressV4, port = '53'] =
      /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
    const isPort = Number(port) >= 1 && Number(port) <= 65_535;
    return isIP(text) !== 0 || (isPort && isIP(addressV6 ?? addressV4 ?? '') !== 0);
  },
);

/** IP address, or host name in the format of the URL parser. */
export const siteName: SettingType<string> = {
  expected: 'a host name or an IP address',
  read: canonicalHostOf,
};

export const publicUrl: SettingType<PublicUrl> = {
  expected: 'an http or https URL without query or credentials',
  read: parsePublicUrl,
};

export const fileBelow = textType(
  'names joined by "/", except "." and "..", at most 512 bytes long',
  (text) =>
    Buffer.byteLength(text) <= 512 &&
    text.split('/').every((name) => !['', '.', '..'].includes(name)),
);

/** Ends in `/`. Leaves room for the longest key (contract §1) in S3's 1024 bytes. */
export const keyPrefix: SettingType<string> = {
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
