import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { isReadableFile } from './setting-forms.ts';

/** A certificate chain and its private key, in PEM. */
export interface TlsPair {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/** What OpenSSL has against the pair; unreadable files are faults by themselves. */
export function findTlsFault(
  certFile: string | undefined,
  keyFile: string | undefined,
): string | undefined {
  if (certFile === undefined || keyFile === undefined) return undefined;
  if (!isReadableFile(certFile) || !isReadableFile(keyFile)) return undefined;
  try {
    createSecureContext(readTls(certFile, keyFile));
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/**
 * Reads the pair; `undefined` unless both files are named.
 *
 * @throws Error if one cannot be read
 */
export function readTls(
  certFile: string | undefined,
  keyFile: string | undefined,
): TlsPair | undefined {
  return certFile === undefined || keyFile === undefined
    ? undefined
    : { cert: readFileSync(certFile), key: readFileSync(keyFile) };
}
