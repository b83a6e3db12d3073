import { statSync } from 'node:fs';
import type { z } from 'zod';
import type { Environment, Settings } from './settings.ts';
import { areNested, mayMixUp, SAMPLE_FOLDER } from './storage-settings.ts';
import { findTlsFault } from './tls-pair.ts';

/** Variables whose values are never shown. */
const SECRETS = /SECRET|TOKEN|PASSWORD|_OTLP_(TRACES_)?HEADERS/;

const MEBIBYTE = 2 ** 20;

/**
 * What a worker needs besides an original to make a small image of it: of 256 MiB, originals could have
 * 124 (measured on Linux x64).
 */
const WORKER_OWN_BYTES = 160 * MEBIBYTE;

/** What the variables are judged by. */
interface Judged {
  /** Those that are set. */
  readonly given: Environment;
  /** What they were read as; nothing where one has no known form. */
  readonly parsed: z.ZodSafeParseResult<Settings>;
  /** How many connections of clients there can be. */
  readonly mostConnections: number;
}

/** All faults of the configuration, a line each: of single variables, and of those that go together. */
export function findSettingFaults({ given, parsed, mostConnections }: Judged): string[] {
  const faults: string[] = [];
  const add = (name: string, form: string): void => {
    faults.push(formatFault(name, form, given));
  };
  for (const { path, message } of parsed.error?.issues ?? []) add(path.join('.'), message);
  const values = parsed.data;
  if ((given.TLS_CERT_FILE === undefined) !== (given.TLS_KEY_FILE === undefined)) {
    const missing = given.TLS_CERT_FILE === undefined ? 'TLS_CERT_FILE' : 'TLS_KEY_FILE';
    add(missing, 'a file, since the other half of the pair is set');
  }
  const tlsFault = findTlsFault(given.TLS_CERT_FILE, given.TLS_KEY_FILE);
  if (tlsFault !== undefined) {
    add('TLS_CERT_FILE', `a certificate with its key (${tlsFault})`);
  }
  if (given.STORAGE === 's3') {
    if (given.S3_BUCKET === undefined) {
      add('S3_BUCKET', 'the name of a bucket, since STORAGE is s3');
    }
  } else if (!isDirectory(given.STORAGE_DIR ?? SAMPLE_FOLDER)) {
    add('STORAGE_DIR', 'an existing folder');
  }
  if (values && values.ORIGINALS_MEMORY_BYTES < 2 * values.MAX_ORIGINAL_BYTES) {
    add('ORIGINALS_MEMORY_BYTES', 'at least twice MAX_ORIGINAL_BYTES');
  }
  if (values && values.WORKER_MEMORY_BYTES < values.MAX_ORIGINAL_BYTES + WORKER_OWN_BYTES) {
    add(
      'WORKER_MEMORY_BYTES',
      `at least ${WORKER_OWN_BYTES / MEBIBYTE} MiB more than MAX_ORIGINAL_BYTES`,
    );
  }
  if (given.RESULT_STORE === 'filesystem' && !isDirectory(given.RESULT_STORE_DIR ?? '')) {
    add('RESULT_STORE_DIR', 'an existing folder, since RESULT_STORE is filesystem');
  }
  if (given.RESULT_STORE === 's3' && given.RESULT_S3_BUCKET === undefined) {
    add('RESULT_S3_BUCKET', 'the name of a bucket, since RESULT_STORE is s3');
  }
  if (values && areNested(values)) {
    add('RESULT_STORE_DIR', 'a folder beside that of the originals');
  }
  if (values && mayMixUp(values)) {
    add('RESULT_S3_PREFIX', 'a prefix beside that of the originals, since both are in one bucket');
  }
  if (given.ADMIN_PORT !== undefined && given.ADMIN_TOKEN === undefined) {
    add('ADMIN_TOKEN', 'a token, since ADMIN_PORT is set');
  }
  if (values && Number(given.OTEL_BSP_MAX_EXPORT_BATCH_SIZE) > values.OTEL_BSP_MAX_QUEUE_SIZE) {
    add('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 'at most OTEL_BSP_MAX_QUEUE_SIZE');
  }
  if (Number(given.MAX_CONNECTIONS) > mostConnections) {
    add('MAX_CONNECTIONS', `at most ${mostConnections}, for the limit of open files`);
  }
  return faults;
}

function formatFault(name: string, form: string, given: Environment): string {
  const value = given[name];
  const received =
    value === undefined ? 'nothing' : SECRETS.test(name) ? '***' : formatValue(value);
  return `${name}: expected ${form} but received ${received}`;
}

/**
 * Secrets that stand where they do not belong are a fault, but still somebody's: what is before an `@`, as
 * passwords are in a URL, or after its `?`; or a key itself, in PEM or some other text of several lines, in place
 * of its file.
 */
function formatValue(value: string): string {
  if (/-----BEGIN|[\r\n]/.test(value)) return '***';
  const masked = value.replace(/^(https?:\/\/)?.*@/is, '$1***@');
  return `"${masked.replace(/(\/\/[^?]*\?).*/s, '$1***')}"`;
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false; // not there, or below a folder that must not be looked into
  }
}
