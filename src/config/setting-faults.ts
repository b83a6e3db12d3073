import { readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { createSecureContext } from 'node:tls';
import type { Environment, Setting } from './setting.ts';
import { isReadableFile, MEBIBYTE } from './setting-forms.ts';
import { type SettingName, type Settings, settingNames, settingTable } from './settings.ts';
import { hasKeys, keySettingNames } from './variables/key-settings.ts';
import {
  areNested,
  areUploadsNested,
  isListFileServed,
  isListKeyServed,
  isUploadsBucketRead,
  mayMixUp,
  SAMPLE_FOLDER,
} from './variables/storage-settings.ts';

/** Memory that a worker needs besides an original to make a small image of it (measured: 132 MiB on Linux x64). */
const WORKER_OWN_BYTES = 160 * MEBIBYTE;

interface Judged {
  readonly given: Environment;
  /** `undefined` if a variable does not have its form. */
  readonly values: Settings | undefined;
  readonly mostConnections: number;
}

/** A rule about related variables; returns the form that the named variable must have if the rule is broken. */
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
    'WORKER_MEMORY_BYTES',
    `at least ${WORKER_OWN_BYTES / MEBIBYTE} MiB more than MAX_ORIGINAL_BYTES`,
    ({ WORKER_MEMORY_BYTES: bytes = Infinity, MAX_ORIGINAL_BYTES }) =>
      bytes < MAX_ORIGINAL_BYTES + WORKER_OWN_BYTES,
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
  [
    'UPLOADS_DIR',
    ({ given }) => {
      if (given.UPLOADS_DIR === undefined) return undefined;
      if (given.UPLOADS_S3_BUCKET !== undefined) return 'nothing, since UPLOADS_S3_BUCKET is set';
      return !isDirectory(given.UPLOADS_DIR) && 'an existing folder';
    },
  ],
  comparing('UPLOADS_DIR', 'a folder beside those of originals and renderings', areUploadsNested),
  comparing(
    'UPLOADS_S3_BUCKET',
    'a bucket that has neither originals nor renderings',
    (values) => values.UPLOADS_DIR === undefined && isUploadsBucketRead(values),
  ),
  comparing(
    'UPLOADS_DIR_BUCKET',
    'another name than those of other buckets',
    (values) => values.UPLOADS_DIR !== undefined && isUploadsBucketRead(values),
  ),
  [
    'BLOCKLIST_FILE',
    ({ given }) =>
      given.BLOCKLIST === 'filesystem' &&
      (given.BLOCKLIST_FILE === undefined || !isDirectory(dirname(given.BLOCKLIST_FILE))) &&
      'a file in an existing folder, since BLOCKLIST is filesystem',
  ],
  needed('BLOCKLIST_S3_BUCKET', 'the name of a bucket, since BLOCKLIST is s3', 'BLOCKLIST', 's3'),
  comparing('BLOCKLIST_FILE', 'a file outside of STORAGE_DIR and UPLOADS_DIR', isListFileServed),
  comparing(
    'BLOCKLIST_S3_BUCKET',
    'another bucket than UPLOADS_S3_BUCKET',
    ({ BLOCKLIST, BLOCKLIST_S3_BUCKET, UPLOADS_S3_BUCKET }) =>
      BLOCKLIST === 's3' &&
      BLOCKLIST_S3_BUCKET !== undefined &&
      BLOCKLIST_S3_BUCKET === UPLOADS_S3_BUCKET,
  ),
  comparing(
    'BLOCKLIST_S3_KEY',
    'a key that no original can have, since S3_BUCKET has the list',
    isListKeyServed,
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
  needed('EDGE_ZONE', 'the id of a zone, since EDGE is set', 'EDGE'),
  [
    'EDGE_TOKEN',
    ({ given }) => {
      const { EDGE: edge, EDGE_TOKEN: token, EDGE_TOKEN_FILE: file } = given;
      if (token !== undefined && file !== undefined) return 'nothing, since EDGE_TOKEN_FILE is set';
      if (edge === undefined || edge === 'cloudfront') return undefined;
      return token === undefined && file === undefined && `a token, since EDGE is ${edge}`;
    },
  ],
  [
    'EDGE',
    ({ given }) =>
      given.EDGE !== undefined &&
      (given.BLOCKLIST ?? 'none') === 'none' &&
      'nothing, or BLOCKLIST to be set, next to whose list the purges are stored',
  ],
  needed('ADMIN_TOKEN', 'a token, since ADMIN_PORT is set', 'ADMIN_PORT'),
  needed('INTERNAL_TOKEN', 'a token, since INTERNAL_PORT is set', 'INTERNAL_PORT'),
  [
    'MAX_CONNECTIONS',
    ({ given, mostConnections }) =>
      Number(given.MAX_CONNECTIONS) > mostConnections &&
      `at most ${mostConnections}, for the limit of open files`,
  ],
];

/**
 * Reads all variables by the table, and checks them, singly and together; returns values and faults, a line each.
 *
 * @param derived defaults that replace those of the table
 */
export function readSettings(
  given: Environment,
  mostConnections: number,
  derived: Readonly<Partial<Record<SettingName, unknown>>>,
) {
  const faults: string[] = [];
  const read = (name: SettingName): unknown => {
    const row: Setting = settingTable[name];
    const text = given[name];
    if (text === undefined) return derived[name] ?? row.default;
    const value = row.form.read(text);
    if (value === undefined) faults.push(formatFault(name, row.form.words, text));
    return value;
  };
  // Each value has the type of its row's form.
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

/** Masks secrets in a faulty value: before an `@` or after the `?` of a URL, or a key itself in place of its file. */
function formatValue(value: string): string {
  if (/-----BEGIN|[\r\n]/.test(value)) return '***';
  const masked = value.replace(/^(https?:\/\/)?.*@/is, '$1***@');
  return `"${masked.replace(/(\/\/[^?]*\?).*/s, '$1***')}"`;
}

/** Returns the rule that a variable must be set if another one is set, or has a certain value. */
function needed(name: SettingName, form: string, other: SettingName, value?: string): Rule {
  return [
    name,
    ({ given }) => {
      const isAsked = value === undefined ? given[other] !== undefined : given[other] === value;
      return isAsked && given[name] === undefined && form;
    },
  ];
}

/** Returns a rule about values, checked only if all variables have their form. */
function comparing(name: SettingName, form: string, isBroken: (values: Settings) => boolean): Rule {
  return [name, ({ values }) => values !== undefined && isBroken(values) && form];
}

/** Returns OpenSSL's complaint about a certificate and its key; unreadable files are reported elsewhere. */
function findTlsFault(certFile = '', keyFile = ''): string | undefined {
  if (!isReadableFile(certFile) || !isReadableFile(keyFile)) return undefined;
  try {
    createSecureContext(readTls(certFile, keyFile));
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Reads a certificate chain and its private key, in PEM; `undefined` unless both files are named. */
export function readTls(certFile: string | undefined, keyFile: string | undefined) {
  return certFile === undefined || keyFile === undefined
    ? undefined
    : { cert: readFileSync(certFile), key: readFileSync(keyFile) };
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false; // missing, or below a folder without permission
  }
}
