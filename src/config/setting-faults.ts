import { statSync } from 'node:fs';
import type { Environment, Setting } from './setting.ts';
import { MEBIBYTE } from './setting-forms.ts';
import { type SettingName, type Settings, settingNames, settingTable } from './settings.ts';
import { findTlsFault } from './tls-pair.ts';
import { hasKeys, keySettingNames } from './variables/key-settings.ts';
import { areNested, mayMixUp, SAMPLE_FOLDER } from './variables/storage-settings.ts';
import { findProtocolFault } from './variables/tracing-settings.ts';

/**
 * What a worker needs besides an original to make a small image of it: of 256 MiB, originals could have
 * 124 (measured on Linux x64).
 */
const WORKER_OWN_BYTES = 160 * MEBIBYTE;

/** What a rule about several variables looks at. */
interface Judged {
  /** Those that are set. */
  readonly given: Environment;
  /** `undefined` where one of them has no known form. */
  readonly values: Settings | undefined;
  /** How many connections of clients there can be. */
  readonly mostConnections: number;
}

/** A rule about variables that go together: the form that one of them must have where the rule is broken. */
type Rule = readonly [SettingName, (judged: Judged) => string | false | undefined];

const rules: readonly Rule[] = [
  needed('TLS_CERT_FILE', 'a file, since the other half of the pair is set', 'TLS_KEY_FILE'),
  needed('TLS_KEY_FILE', 'a file, since the other half of the pair is set', 'TLS_CERT_FILE'),
  [
    'TLS_CERT_FILE',
    ({ given }) => {
      const fault = findTlsFault(given.TLS_CERT_FILE, given.TLS_KEY_FILE);
      return fault !== undefined && `a certificate with its key (${fault})`;
    },
  ],
  needed('S3_BUCKET', 'the name of a bucket, since STORAGE is s3', 'STORAGE', 's3'),
  [
    'STORAGE_DIR',
    ({ given }) => {
      if (given.STORAGE === 's3') return undefined;
      if (given.STORAGE_DIR === undefined && given.NODE_ENV === 'production') {
        return 'an existing folder, since NODE_ENV is production';
      }
      return !isDirectory(given.STORAGE_DIR ?? SAMPLE_FOLDER) && 'an existing folder';
    },
  ],
  comparing(
    'ORIGINALS_MEMORY_BYTES',
    'at least twice MAX_ORIGINAL_BYTES',
    (values) => values.ORIGINALS_MEMORY_BYTES < 2 * values.MAX_ORIGINAL_BYTES,
  ),
  comparing(
    'WORKER_MEMORY_BYTES',
    `at least ${WORKER_OWN_BYTES / MEBIBYTE} MiB more than MAX_ORIGINAL_BYTES`,
    (values) => values.WORKER_MEMORY_BYTES < values.MAX_ORIGINAL_BYTES + WORKER_OWN_BYTES,
  ),
  [
    'RESULT_STORE_DIR',
    ({ given }) =>
      given.RESULT_STORE === 'filesystem' &&
      !isDirectory(given.RESULT_STORE_DIR ?? '') &&
      'an existing folder, since RESULT_STORE is filesystem',
  ],
  needed(
    'RESULT_S3_BUCKET',
    'the name of a bucket, since RESULT_STORE is s3',
    'RESULT_STORE',
    's3',
  ),
  comparing('RESULT_STORE_DIR', 'a folder beside that of the originals', areNested),
  comparing(
    'RESULT_S3_PREFIX',
    'a prefix beside that of the originals, since both are in one bucket',
    mayMixUp,
  ),
  ...keySettingNames.map(
    (name): Rule => [
      `${name}_FILE`,
      ({ given }) =>
        given[name] !== undefined &&
        given[`${name}_FILE`] !== undefined &&
        `nothing, since ${name} is set`,
    ],
  ),
  [
    'ATTACHMENT_SIGNING_KEYS',
    ({ given }) => {
      const { ATTACHMENT_SIGNING: mode = 'off' } = given;
      const isNeeded = mode === 'report' || mode === 'enforce';
      return (
        isNeeded &&
        !hasKeys(given, 'ATTACHMENT_SIGNING_KEYS') &&
        `a key, since ATTACHMENT_SIGNING is ${mode}`
      );
    },
  ],
  comparing(
    'EXTERNAL_MAX_AGE_SECONDS',
    'at least EXTERNAL_MIN_AGE_SECONDS',
    (values) => values.EXTERNAL_MAX_AGE_SECONDS < values.EXTERNAL_MIN_AGE_SECONDS,
  ),
  needed('ADMIN_TOKEN', 'a token, since ADMIN_PORT is set', 'ADMIN_PORT'),
  ['OTEL_EXPORTER_OTLP_PROTOCOL', ({ given }) => findProtocolFault(given, 'general')],
  ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', ({ given }) => findProtocolFault(given, 'traces')],
  [
    'MAX_CONNECTIONS',
    ({ given, mostConnections }) =>
      Number(given.MAX_CONNECTIONS) > mostConnections &&
      `at most ${mostConnections}, for the limit of open files`,
  ],
];

/**
 * Reads all variables by the table, and judges them: each by itself, then those that go together.
 *
 * @param given those that are set
 * @param mostConnections how many connections of clients there can be
 * @returns what they were read as, and what is wrong with them, a line each
 */
export function readSettings(given: Environment, mostConnections: number) {
  const faults: string[] = [];
  const read = (name: SettingName): unknown => {
    const row: Setting = settingTable[name];
    const text = given[name];
    if (text === undefined) return row.default;
    const value = row.form.read(text);
    if (value === undefined) faults.push(formatFault(name, row.form.words, text));
    return value;
  };
  // Each value is of its row's form: the type says so of the table.
  const values = Object.fromEntries(settingNames.map((name) => [name, read(name)])) as Settings;
  const judged = { given, values: faults.length > 0 ? undefined : values, mostConnections };
  for (const [name, judge] of rules) {
    const form = judge(judged);
    if (typeof form === 'string') faults.push(formatFault(name, form, given[name]));
  }
  return { values, faults };
}

function formatFault(name: SettingName, form: string, text: string | undefined): string {
  const row: Setting = settingTable[name];
  const received = text === undefined ? 'nothing' : row.isSecret ? '***' : formatValue(text);
  return `${name}: expected ${form} but received ${received}`;
}

/**
 * Secrets that stand where they do not belong are a fault, and still secrets: what is before an `@`, as
 * passwords are in a URL, or after its `?`; or a key itself, in PEM or some other text of several lines, in place
 * of its file.
 */
function formatValue(value: string): string {
  if (/-----BEGIN|[\r\n]/.test(value)) return '***';
  const masked = value.replace(/^(https?:\/\/)?.*@/is, '$1***@');
  return `"${masked.replace(/(\/\/[^?]*\?).*/s, '$1***')}"`;
}

/** The rule that a variable must be set where another one is, or has a certain value. */
function needed(name: SettingName, form: string, other: SettingName, value?: string): Rule {
  return [
    name,
    ({ given }) => {
      const isAsked = value === undefined ? given[other] !== undefined : given[other] === value;
      return isAsked && given[name] === undefined && form;
    },
  ];
}

/** A rule about values, which can be broken only where each of them has a known form. */
function comparing(name: SettingName, form: string, isBroken: (values: Settings) => boolean): Rule {
  return [name, ({ values }) => values !== undefined && isBroken(values) && form];
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false; // not there, or below a folder that must not be looked into
  }
}
