import { fileURLToPath } from 'node:url';

/** Paths of the tests' self-signed certificate and its key, in PEM. */
export const tlsFiles = {
  cert: fileURLToPath(new URL('../../../fixtures/tls/cert.pem', import.meta.url)),
  key: fileURLToPath(new URL('../../../fixtures/tls/key.pem', import.meta.url)),
} as const;

export const tlsSettings = { TLS_CERT_FILE: tlsFiles.cert, TLS_KEY_FILE: tlsFiles.key };

/** Rows of a test for both listeners. */
export const eitherListener = [
  ['plain', {}],
  ['with TLS', tlsSettings],
] as const;
