import { createHmac, randomBytes } from 'node:crypto';
import { type MediaRequest, resultKey, splitTarget } from '../../contract/media-request.ts';
import {
  type AttachmentSigning,
  type JudgedSignature,
  judgeSignature,
  readEnd,
  type SignatureVerdict,
} from '../../contract/signing/attachment-signature.ts';
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

/** A request with its `resultKey`. */
export interface KeyedRequest {
  readonly media: MediaRequest;
  readonly key: string;
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
  /** Secret of this process, so that nobody can store an original at an absent key. */
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

  /**
   * Returns the key of a missing attachment, one for each key. It has no id, so no original can ever have it, and no
   * folder of the key that it stands for, so that the origin does not touch that folder.
   */
  #absentKeyOf(originKey: string): string {
    const digest = createHmac('sha256', this.#secret).update(originKey).digest('hex');
    return `attachments/x${digest.slice(0, 20)}/x${digest.slice(20, 40)}/${digest.slice(40)}`;
  }
}
