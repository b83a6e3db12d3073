import { readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { createSecureContext } from 'node:tls';
import type { Environment, Setting } from './setting.ts';
import { isReadableFile, MEBIBYTE } from './setting-types.ts';
import { type SettingName, type Settings, settingNames, settingTable } from './settings.ts';
import { hasKeys, keySettingNames } from './variables/key-settings.ts';
import {
  areNested,
  areUploadsNested,
  isListFileServed,
  isListKeyServed,
  isUploadsBucketShared,
  prefixesOverlap,
  SAMPLE_DIRECTORY,
} from './variables/storage-settings.ts';

/** Memory of a worker for a small image, without the original (measured: 132 MiB on Linux x64). */
const WORKER_OWN_BYTES = 160 * MEBIBYTE;

interface Checked {
  readonly environment: Environment;
  readonly values: Settings | undefined;
  readonly maxConnections: number;
}

/** Returns what is expected of the variable if the rule is broken. */
type Rule = readonly [SettingName, (checked: Checked) => string | false | undefined];

const rules: readonly Rule[] = [
  requiredIf('TLS_CERT_FILE', 'a file, since TLS_KEY_FILE is set', 'TLS_KEY_FILE'),
  requiredIf('TLS_KEY_FILE', 'a file, since TLS_CERT_FILE is set', 'TLS_CERT_FILE'),
  [
    'TLS_CERT_FILE',
    ({ environment }) => {
      const fault = findTlsFault(environment.TLS_CERT_FILE, environment.TLS_KEY_FILE);
      return fault !== undefined && `a certificate with its key (${fault})`;
    },
  ],
  requiredIf('S3_BUCKET', 'the name of a bucket, since STORAGE is s3', 'STORAGE', 's3'),
  [
    'STORAGE_DIR',
    ({ environment }) => {
      if (environment.STORAGE === 's3') return undefined;
      if (environment.STORAGE_DIR === undefined && environment.NODE_ENV === 'production') {
        return 'an existing directory, since NODE_ENV is production';
      }
      return !isDirectory(environment.STORAGE_DIR ?? SAMPLE_DIRECTORY) && 'an existing directory';
    },
  ],
  invalidIf(
    'WORKER_MEMORY_BYTES',
    `at least ${WORKER_OWN_BYTES / MEBIBYTE} MiB more than MAX_ORIGINAL_BYTES`,
    ({ WORKER_MEMORY_BYTES: bytes = Infinity, MAX_ORIGINAL_BYTES }) =>
      bytes < MAX_ORIGINAL_BYTES + WORKER_OWN_BYTES,
  ),
  [
    'RESULT_STORE_DIR',
    ({ environment }) =>
      environment.RESULT_STORE === 'filesystem' &&
      !isDirectory(environment.RESULT_STORE_DIR ?? '') &&
      'an existing directory, since RESULT_STORE is filesystem',
  ],
  requiredIf(
    'RESULT_S3_BUCKET',
    'the name of a bucket, since RESULT_STORE is s3',
    'RESULT_STORE',
    's3',
  ),
  invalidIf('RESULT_STORE_DIR', 'a directory separate from that of the originals', areNested),
  invalidIf(
    'RESULT_S3_PREFIX',
    'a prefix separate from that of the originals, since both are in one bucket',
    prefixesOverlap,
  ),
  [
    'UPLOADS_DIR',
    ({ environment }) => {
      if (environment.UPLOADS_DIR === undefined) return undefined;
      if (environment.UPLOADS_S3_BUCKET !== undefined)
        return 'nothing, since UPLOADS_S3_BUCKET is set';
      return !isDirectory(environment.UPLOADS_DIR) && 'an existing directory';
    },
  ],
  invalidIf(
    'UPLOADS_DIR',
    'a directory separate from those of originals and renderings',
    areUploadsNested,
  ),
  invalidIf(
    'UPLOADS_S3_BUCKET',
    'a bucket that has neither originals nor renderings',
    (values) => values.UPLOADS_DIR === undefined && isUploadsBucketShared(values),
  ),
  invalidIf(
    'UPLOADS_DIR_BUCKET',
    'a name that no other bucket has',
    (values) => values.UPLOADS_DIR !== undefined && isUploadsBucketShared(values),
  ),
  [
    'BLOCKLIST_FILE',
    ({ environment }) =>
      environment.BLOCKLIST === 'filesystem' &&
      (environment.BLOCKLIST_FILE === undefined ||
        !isDirectory(dirname(environment.BLOCKLIST_FILE))) &&
      'a file in an existing directory, since BLOCKLIST is filesystem',
  ],
  requiredIf(
    'BLOCKLIST_S3_BUCKET',
    'the name of a bucket, since BLOCKLIST is s3',
    'BLOCKLIST',
    's3',
  ),
  invalidIf('BLOCKLIST_FILE', 'a file outside of STORAGE_DIR and UPLOADS_DIR', isListFileServed),
  invalidIf(
    'BLOCKLIST_S3_BUCKET',
    'a bucket other than UPLOADS_S3_BUCKET',
    ({ BLOCKLIST, BLOCKLIST_S3_BUCKET, UPLOADS_S3_BUCKET }) =>
      BLOCKLIST === 's3' &&
      BLOCKLIST_S3_BUCKET !== undefined &&
      BLOCKLIST_S3_BUCKET === UPLOADS_S3_BUCKET,
  ),
  invalidIf(
    'BLOCKLIST_S3_KEY',
    'a key that no original can have, since the list is in S3_BUCKET',
    isListKeyServed,
  ),
  ...keySettingNames.map(
    (name): Rule => [
      `${name}_FILE`,
      ({ environment }) =>
        environment[name] !== undefined &&
        environment[`${name}_FILE`] !== undefined &&
        `nothing, since ${name} is set`,
    ],
  ),
  [
    'ATTACHMENT_SIGNING_KEYS',
    ({ environment }) => {
      const { ATTACHMENT_SIGNING: mode = 'off' } = environment;
      const isNeeded = mode === 'report' || mode === 'enforce';
      return (
        isNeeded &&
        !hasKeys(environment, 'ATTACHMENT_SIGNING_KEYS') &&
        `a key, since ATTACHMENT_SIGNING is ${mode}`
      );
    },
  ],
  invalidIf(
    'EXTERNAL_MAX_AGE_SECONDS',
    'at least EXTERNAL_MIN_AGE_SECONDS',
    (values) => values.EXTERNAL_MAX_AGE_SECONDS < values.EXTERNAL_MIN_AGE_SECONDS,
  ),
  requiredIf('EDGE_ZONE', 'the id of a zone, since EDGE is set', 'EDGE'),
  [
    'EDGE_TOKEN',
    ({ environment }) => {
      const { EDGE: edge, EDGE_TOKEN: token, EDGE_TOKEN_FILE: file } = environment;
      if (token !== undefined && file !== undefined) return 'nothing, since EDGE_TOKEN_FILE is set';
      if (edge === undefined || edge === 'cloudfront') return undefined;
      return token === undefined && file === undefined && `a token, since EDGE is ${edge}`;
    },
  ],
  [
    'EDGE',
    ({ environment }) =>
      environment.EDGE !== undefined &&
      (environment.BLOCKLIST ?? 'none') === 'none' &&
      'nothing unless BLOCKLIST is set, since pending purges are stored next to the list',
  ],
  requiredIf('ADMIN_TOKEN', 'a token, since ADMIN_PORT is set', 'ADMIN_PORT'),
  requiredIf('INTERNAL_TOKEN', 'a token, since INTERNAL_PORT is set', 'INTERNAL_PORT'),
  [
    'MAX_CONNECTIONS',
    ({ environment, maxConnections }) =>
      Number(environment.MAX_CONNECTIONS) > maxConnections &&
      `at most ${maxConnections} with this limit of open files`,
  ],
];

/** Reads and checks all variables and their relations. @param derived replaces defaults of the table */
export function readSettings(
  environment: Environment,
  maxConnections: number,
  derived: Readonly<Partial<Record<SettingName, unknown>>>,
) {
  const faults: string[] = [];
  const read = (name: SettingName): unknown => {
    const row: Setting = settingTable[name];
    const text = environment[name];
    if (text === undefined) return derived[name] ?? row.default;
    const value = row.type.read(text);
    if (value === undefined) faults.push(formatFault(name, row.type.expected, text));
    return value;
  };
  const values = Object.fromEntries(settingNames.map((name) => [name, read(name)])) as Settings;
  const checked = { environment, values: faults.length > 0 ? undefined : values, maxConnections };
  for (const [name, check] of rules) {
    const expected = check(checked);
    if (typeof expected === 'string') faults.push(formatFault(name, expected, environment[name]));
  }
  return { values, faults };
}

function formatFault(name: SettingName, expected: string, text: string | undefined): string {
  const row: Setting = settingTable[name];
  const received = text === undefined ? 'nothing' : row.isSecret ? '***' : formatValue(text);
  return `${name}: expected ${expected} but received ${received}`;
}

/** Masks secrets in an invalid value: before the `@` or after the `?` of a URL, or a key pasted instead of its path. */
function formatValue(value: string): string {
  if (/-----BEGIN|[\r\n]/.test(value)) return '***';
  const masked = value.replace(/^(https?:\/\/)?.*@/is, '$1***@');
  return `"${masked.replace(/(\/\/[^?]*\?).*/s, '$1***')}"`;
}

function requiredIf(name: SettingName, expected: string, other: SettingName, value?: string): Rule {
  return [
    name,
    ({ environment }) => {
      const isRequired =
        value === undefined ? environment[other] !== undefined : environment[other] === value;
      return isRequired && environment[name] === undefined && expected;
    },
  ];
}

/** Applies only if all variables are valid on their own. */
function invalidIf(
  name: SettingName,
  expected: string,
  isInvalid: (values: Settings) => boolean,
): Rule {
  return [name, ({ values }) => values !== undefined && isInvalid(values) && expected];
}

function findTlsFault(certFile = '', keyFile = ''): string | undefined {
  if (!isReadableFile(certFile) || !isReadableFile(keyFile)) return undefined;
  try {
    createSecureContext(readTls(certFile, keyFile));
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

export function readTls(certFile: string | undefined, keyFile: string | undefined) {
  return certFile === undefined || keyFile === undefined
    ? undefined
    : { cert: readFileSync(certFile), key: readFileSync(keyFile) };
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false; // missing, or below a directory without permission
  }
}
