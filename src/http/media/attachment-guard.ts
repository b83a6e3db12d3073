import { type MediaRequest, splitTarget } from '../../contract/media-request.ts';
import {
  type AttachmentSigning,
  type JudgedSignature,
  judgeSignature,
  readEnd,
  type SignatureVerdict,
} from '../../contract/signing/attachment-signature.ts';
import { absentOf, type KeyedRequest } from '../../pipeline/absent-media.ts';
import type { Meter } from '../../pipeline/meter.ts';

/** Whether the URLs of attachments must be signed, and with what. */
interface AttachmentGuardOptions {
  /** `report`: all are served, and counted. */
  readonly mode: 'report' | 'enforce';
  readonly signing: AttachmentSigning;
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
  readonly meter: Pick<Meter, 'count'>;
}

/** An attachment's judged URL. */
export interface GuardedAttachment {
  readonly signature: JudgedSignature;
  /** Served in the place of what was asked for, where the signature does not hold. */
  readonly absent: KeyedRequest;
}

/** Judges the signatures of attachments (contract §9). */
export class AttachmentGuard {
  readonly #options: AttachmentGuardOptions;

  constructor(options: AttachmentGuardOptions) {
    this.#options = options;
  }

  /** Reads and judges the signature of a URL. All URLs take the same work, whatever they turn out to be. */
  examine(target: string, request: MediaRequest): GuardedAttachment {
    const { signing, wallClock } = this.#options;
    const [, query] = splitTarget(target);
    const signature = judgeSignature(query, request.originKey, signing, wallClock());
    return { signature, absent: absentOf(request) };
  }

  /** Returns the current verdict on a judged signature: a valid one expires. Each call is counted as a URL. */
  judge({ verdict, endsAtSeconds = 0 }: JudgedSignature): SignatureVerdict {
    const isOver = verdict === 'valid' && this.#options.wallClock() >= endsAtSeconds * 1000;
    const current = isOver ? 'expired' : verdict;
    this.#options.meter.count('signatures', current);
    return current;
  }

  /** Whether a URL of this verdict is shown nothing. */
  isRefused(verdict: SignatureVerdict): boolean {
    return verdict !== 'valid' && this.#options.mode === 'enforce';
  }

  /**
   * Returns how long a cache may keep the response to a URL, in seconds: a second less than the URL has left, since nginx
   * counts in whole seconds and keeps a response for all of the last one. `undefined`: the URL has no end.
   */
  maxAgeOf({ endsAtSeconds }: Pick<JudgedSignature, 'endsAtSeconds'>): number | undefined {
    if (endsAtSeconds === undefined) return undefined;
    return Math.max(0, Math.floor(endsAtSeconds - this.#options.wallClock() / 1000) - 1);
  }

  /**
   * Returns how long a cache may keep a 400, 415 or 422 of a target, in seconds; `undefined`: as long as any. The end of a
   * URL bounds that whatever its signature is, so that nobody can try signatures.
   */
  maxRefusalAgeOf(target: string): number | undefined {
    const [, query] = splitTarget(target);
    const endsAtSeconds = readEnd(query);
    const isOver = (endsAtSeconds ?? 0) * 1000 <= this.#options.wallClock();
    return isOver ? undefined : this.maxAgeOf({ endsAtSeconds });
  }
}
