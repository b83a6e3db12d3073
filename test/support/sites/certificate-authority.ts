import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A certificate of a host, with its key; both are files in PEM. */
export interface HostCertificate {
  readonly certFile: string;
  readonly keyFile: string;
}

/** A certificate authority that is trusted only where its certificate is given. */
export class CertificateAuthority {
  /** In PEM, as `NODE_EXTRA_CA_CERTS` takes it. */
  readonly certFile: string;
  readonly #folder: string;
  readonly #keyFile: string;

  /** Makes its files in a folder, with Debian's openssl. */
  constructor(folder: string) {
    this.#folder = folder;
    this.certFile = join(folder, 'authority.pem');
    this.#keyFile = join(folder, 'authority-key.pem');
    openssl('req', '-x509', ...EC_KEY, '-days', '2', '-subj', '/CN=Authority of the tests', [
      ...['-out', this.certFile, '-keyout', this.#keyFile],
    ]);
  }

  /** Issues a certificate of a host's name. */
  issue(host: string): HostCertificate {
    const [certFile, keyFile] = [`${host}.pem`, `${host}-key.pem`].map((name) =>
      join(this.#folder, name),
    ) as [string, string];
    const request = join(this.#folder, `${host}.csr`);
    const extensions = join(this.#folder, `${host}.ext`);
    writeFileSync(extensions, `subjectAltName=DNS:${host}\n`);
    openssl('req', ...EC_KEY, '-subj', `/CN=${host}`, ['-out', request, '-keyout', keyFile]);
    openssl('x509', '-req', '-in', request, '-days', '2', '-CAcreateserial', [
      ...['-CA', this.certFile, '-CAkey', this.#keyFile, '-extfile', extensions, '-out', certFile],
    ]);
    return { certFile, keyFile };
  }
}

const EC_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'] as const;

function openssl(...args: readonly (string | readonly string[])[]): void {
  execFileSync('openssl', args.flat(), { stdio: 'pipe' });
}
