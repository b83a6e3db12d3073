import { MediaError } from '../contract/errors.ts';
import type { ResourceName } from '../contract/resources.ts';
import {
  type AttachmentSigning,
  signAttachment,
} from '../contract/signing/attachment-signature.ts';
import { formatExternalPath } from '../contract/signing/external-path.ts';
import type { SigningKeys } from '../contract/signing/signing-keys.ts';

interface ExplorerSigning {
  /** `undefined`: attachments need no signature. */
  readonly attachments: AttachmentSigning | undefined;
  /** `undefined`: external media are disabled. */
  readonly external: SigningKeys | undefined;
  /** Milliseconds since 1970. */
  readonly nowMs: () => number;
}

/**
 * Signs paths for everyone who can open the explorer, as `darkroom sign` does for those who have the keys. So a signer
 * exists only if the operator has set `EXPLORER=on`.
 */
export class ExplorerSigner {
  readonly #signing: ExplorerSigning;

  constructor(signing: ExplorerSigning) {
    this.#signing = signing;
  }

  /** Resources whose paths are signed. */
  get signs(): readonly ResourceName[] {
    const { attachments, external } = this.#signing;
    return [
      ...(attachments === undefined ? [] : (['attachment'] as const)),
      ...(external === undefined ? [] : (['external media'] as const)),
    ];
  }

  /** Returns the parameters that sign an attachment; `undefined` for other originals. */
  signKey(key: string): Readonly<Record<string, string>> | undefined {
    const { attachments, nowMs } = this.#signing;
    const signed = attachments && signAttachment(key, attachments, nowMs());
    if (signed === undefined) return undefined;
    return Object.fromEntries(new URLSearchParams(signed.slice(signed.indexOf('?'))));
  }

  /**
   * Signs the URL of another site, `url`, or the key of an attachment, `key`.
   *
   * @throws MediaError `INVALID_FORM_BODY` if the query has neither
   */
  sign(query: URLSearchParams): { readonly path: string } {
    const { attachments, external, nowMs } = this.#signing;
    const [url, key] = [query.get('url'), query.get('key')];
    if (url !== null && external !== undefined) {
      if (/^https?:\/\/[^/]/i.test(url)) return { path: formatExternalPath(url, external) };
      throw refuse('url', 'Expected the URL of a picture, video or sound on another site.');
    }
    const path = key !== null && attachments && signAttachment(key, attachments, nowMs());
    if (path) return { path };
    throw refuse('key', 'Expected the key of an attachment.');
  }
}

function refuse(path: string, message: string): MediaError {
  return new MediaError('INVALID_FORM_BODY', { faults: [{ path, message }] });
}
