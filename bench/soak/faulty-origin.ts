import { setTimeout as sleep } from 'node:timers/promises';
import { type Fault, FaultProxy } from '../../test/support/s3/fault-proxy.ts';
import { LOCAL_CREDENTIALS, startLocalS3 } from '../../test/support/s3/local-s3.ts';
import { epochMs } from '../harness/load.ts';
import type { Random } from '../harness/random.ts';
import { listOriginals } from './originals.ts';

const CYCLE_MS = 40_000;

/** What the service still feels of a wave, in milliseconds: until it gives up on what hangs. */
const HANGING_SHADOW_MS = 14_000;
const SHADOW_MS = 2_000;

/** What may go wrong with an origin. */
interface WaveKind {
  readonly name: string;
  /** What is done to every response; nothing listens where there is none. */
  readonly fault?: Fault;
  readonly lengthMs: number;
  /** For how long after a wave it is still felt. */
  readonly shadowMs: number;
  /** Responses come late, but in time. */
  readonly isHarmless?: boolean;
}

function createError(status: string, code: string): Fault {
  const body = `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code></Error>`;
  const head = `HTTP/1.1 ${status}\r\nContent-Type: application/xml\r\nContent-Length: ${body.length}`;
  return { kind: 'answer', bytes: `${head}\r\n\r\n${body}` };
}

const usual = { lengthMs: 12_000, shadowMs: SHADOW_MS } as const;
const hanging = { lengthMs: 12_000, shadowMs: HANGING_SHADOW_MS } as const;
const kinds: readonly WaveKind[] = [
  { name: 'slow', fault: { kind: 'trickle', bytes: 2 ** 16 }, ...usual, isHarmless: true },
  { name: 'no responses', fault: { kind: 'hang' }, ...hanging },
  { name: 'stalled bodies', fault: { kind: 'stall', afterBytes: 0 }, ...hanging },
  { name: 'reset connections', fault: { kind: 'reset', afterBytes: 0 }, ...usual },
  { name: 'truncated bodies', fault: { kind: 'cut', afterBytes: 0 }, ...usual },
  {
    name: 'status 500',
    fault: createError('500 Internal Server Error', 'InternalError'),
    ...usual,
  },
  {
    name: 'status 503 SlowDown',
    fault: createError('503 Slow Down', 'SlowDown'),
    ...usual,
  },
  { name: 'connections refused', lengthMs: 5_000, shadowMs: SHADOW_MS },
];

/** A time in which the origin fails. Times are milliseconds after the load began. */
export interface Wave {
  readonly kind: WaveKind;
  readonly startMs: number;
  readonly endMs: number;
}

/** Whether a wave within a span of time explains a failure. */
export function isStruck(waves: readonly Wave[], fromMs: number, toMs: number): boolean {
  return waves.some(({ kind, startMs, endMs }) => {
    const isThen = fromMs < endMs + kind.shadowMs && toMs > startMs;
    return isThen && kind.isHarmless !== true;
  });
}

/** A real S3 server with all originals, behind a proxy that spoils responses in waves. */
export interface FaultyOrigin {
  /** For the service: where it is and which credentials it takes. */
  readonly settings: Readonly<Record<string, string>>;
  /**
   * Fails in waves until it is over: one in each cycle, each kind as often as the others, the start left alone.
   *
   * @param beganMs when the load began, since 1970
   */
  readonly strike: (random: Random, beganMs: number, over: AbortSignal) => Promise<Wave[]>;
  readonly close: () => Promise<void>;
}

/** Starts the server in this process, and puts the originals into it. */
export async function startFaultyOrigin(): Promise<FaultyOrigin> {
  const s3 = await startLocalS3();
  for (const original of Object.values(listOriginals()).flat()) {
    await s3.put(original.key, original.read());
  }
  const proxy = new FaultProxy(s3.port);
  await proxy.listen();
  return {
    settings: {
      STORAGE: 's3',
      S3_BUCKET: s3.bucket,
      S3_ENDPOINT: proxy.endpoint,
      AWS_EC2_METADATA_DISABLED: 'true',
      // Its advice to use a newer Node is not a line of the log.
      AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true',
      ...LOCAL_CREDENTIALS,
    },
    strike: (random, beganMs, over) => strike(proxy, random, beganMs, over),
    close: async () => {
      await proxy.refuse();
      await s3.close();
    },
  };
}

async function strike(
  proxy: FaultProxy,
  random: Random,
  beganMs: number,
  over: AbortSignal,
): Promise<Wave[]> {
  const nowMs = (): number => epochMs() - beganMs;
  const waitUntil = async (atMs: number): Promise<void> => {
    await sleep(Math.max(0, atMs - nowMs()), undefined, { signal: over }).catch(() => undefined);
  };
  const waves: Wave[] = [];
  const left: WaveKind[] = [];
  for (;;) {
    await waitUntil((waves.length + 0.5) * CYCLE_MS);
    if (over.aborted) return waves;
    if (left.length === 0) left.push(...random.shuffle(kinds));
    const kind = left.pop();
    if (kind === undefined) return waves;
    const startMs = nowMs();
    if (kind.fault === undefined) await proxy.refuse();
    else proxy.spoil(kind.fault);
    await waitUntil(startMs + kind.lengthMs);
    if (kind.fault === undefined) await proxy.listen();
    else proxy.heal();
    waves.push({ kind, startMs, endMs: nowMs() });
  }
}
