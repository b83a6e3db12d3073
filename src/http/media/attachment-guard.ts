import { createHmac, randomBytes } from 'node:crypto';
import { type MediaRequest, resultKey, splitTarget } from '../../contract/media-request.ts';
import {
  type AttachmentSigning,
  type JudgedSignature,
  judgeSignature,
  type SignatureVerdict,
} from '../../contract/signing/attachment-signature.ts';

/** Whether the URLs of attachments must be signed, and with what. */
export interface AttachmentGuardOptions {
  /** `report`: all are served, and counted. */
  readonly mode: 'report' | 'enforce';
  readonly signing: AttachmentSigning;
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
  /** How many URLs were judged to be what. */
  readonly counts: Record<SignatureVerdict, number>;
}

/** A request with its `resultKey`. */
export interface KeyedRequest {
  readonly media: MediaRequest;
  readonly key: string;
}

/** What a URL of an attachment may have shown. */
export interface GuardedAttachment {
  readonly signature: JudgedSignature;
  /** Served in the place of what was asked for, where the signature does not hold. */
  readonly absent: KeyedRequest;
}

/** Judges the signatures of attachments (contract §9). */
export class AttachmentGuard {
  readonly #options: AttachmentGuardOptions;
  /** What cannot be there is called differently by each process, so that nothing can be put there. */
  readonly #secret = randomBytes(32);

  constructor(options: AttachmentGuardOptions) {
    this.#options = options;
  }

  /** Reads and judges the signature of a URL. All URLs take the same work, whatever they turn out to be. */
  examine(target: string, request: MediaRequest): GuardedAttachment {
    const { signing, wallClock } = this.#options;
    const [, query] = splitTarget(target);
    const signature = judgeSignature(query, request.originKey, signing, wallClock());
    const media = { ...request, originKey: this.#absentKeyOf(request.originKey) };
    return { signature, absent: { media, key: resultKey(media) } };
  }

  /** What a signature that was judged before is now: a valid one ends. Each call is counted as a URL. */
  judge({ verdict, endsAtSeconds = 0 }: JudgedSignature): SignatureVerdict {
    const isOver = verdict === 'valid' && this.#options.wallClock() >= endsAtSeconds * 1000;
    const current = isOver ? 'expired' : verdict;
    this.#options.counts[current] += 1;
    return current;
  }

  /** Whether a URL of this verdict is shown nothing. */
  isRefused(verdict: SignatureVerdict): boolean {
    return verdict !== 'valid' && this.#options.mode === 'enforce';
  }

  /**
   * How long the response to a URL may be kept, in seconds; `undefined` where its end says nothing of that. A second
   * less than it has left: nginx counts in whole seconds, and keeps what it has for all of the last one.
   */
  maxAgeOf({ endsAtSeconds }: JudgedSignature): number | undefined {
    if (endsAtSeconds === undefined) return undefined;
    return Math.max(0, Math.floor(endsAtSeconds - this.#options.wallClock() / 1000) - 1);
  }

  /**
   * The key of an attachment that is not there, one for each key. It has no id, so no original can ever have it; and no
   * folder of the key that it stands for, so that nothing of that one is looked at.
   */
  #absentKeyOf(originKey: string): string {
    const digest = createHmac('sha256', this.#secret).update(originKey).digest('hex');
    return `attachments/x${digest.slice(0, 20)}/x${digest.slice(20, 40)}/${digest.slice(40)}`;
  }
}
