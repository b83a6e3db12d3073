import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { isReadableFile } from './setting-forms.ts';

/** Returns OpenSSL's complaint about a certificate and its key; unreadable files are reported elsewhere. */
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
 * Reads a certificate chain and its private key, in PEM; `undefined` unless both files are named.
 *
 * @throws Error if one cannot be read
 */
export function readTls(certFile: string | undefined, keyFile: string | undefined) {
  return certFile === undefined || keyFile === undefined
    ? undefined
    : { cert: readFileSync(certFile), key: readFileSync(keyFile) };
}
