import { realpath } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import { formatCauses, MediaError } from '../../contract/errors.ts';
import type { DecodeRequest } from '../../formats/video/av-metadata.ts';
import { listDecoderSandboxes } from '../confinement/decoder-sandbox.ts';
import {
  type Confinement,
  confinementBy,
  describeConfinement,
  listExposures,
} from '../confinement/report.ts';
import { findOnPath, type Sandbox } from '../confinement/sandbox.ts';
import type { ForkServer, ProgramStart } from '../fork-server/client.ts';
import type { FrameSource } from '../job-requests.ts';
import { codecs, decodeFrame } from './decode-frame.ts';
import { runProgram } from './program-run.ts';

export interface VideoDecoderSettings {
  /** `auto`: the `ffmpeg` on `PATH`; or a path. */
  readonly program: 'auto' | 'off' | (string & {});
  /** Whether sandboxes weaker than contract §12 may be used. */
  readonly mayBeWeaker: boolean;
  /** Maximum private memory of one process (contract §12). */
  readonly memoryBytes: number;
  /** Maximum CPU time of one process. */
  readonly timeoutMs: number;
}

/** Maximum length of ffmpeg's list of decoders; Debian's has 29 kB. */
const MAX_LIST_BYTES = 1024 ** 2;

/** Timeout for all trials, in milliseconds; they take 0.3 s on an idle machine. */
const TRIAL_TIMEOUT_MS = 30_000;

/** Time until the next trial if the machine could not start a process, in milliseconds. */
const RETRY_MS = 1_000;

const STOPPED = 'the service stops';

const TRIAL_FRAME: DecodeRequest = {
  codec: 'h264',
  stream: Buffer.from(
    'AAAAAWdkAAqscgRewEQAAAMABAAAAwDIPEiWEYAAAAABaOhDjyyLAAABZYiBAAV//vZzfCV9',
    'base64',
  ),
  size: { widthPx: 16, heightPx: 16 },
};

export type VideoSupport =
  | (Confinement & {
      readonly isSupported: true;
      readonly program: string;
      readonly version: string;
      /** Whether each process has the full sandbox (contract §12). */
      readonly isWhole: boolean;
    })
  | {
      readonly isSupported: false;
      readonly reason: string;
      /** Whether an operator could have expected posters. */
      readonly isFault: boolean;
    };

interface Found {
  readonly support: VideoSupport;
  readonly sandbox?: Sandbox;
}

/** Runs ffmpeg once per frame: its decoders cover all codecs, and were often attacked. It returns planes as coded. */
export class VideoDecoder implements FrameSource {
  readonly #settings: VideoDecoderSettings;
  readonly #forkServer: ForkServer;
  readonly #environment: Readonly<Record<string, string>>;
  readonly #stop = new AbortController();
  readonly #found: Promise<Found>;
  #find: () => void = () => undefined;

  constructor(
    settings: VideoDecoderSettings,
    forkServer: ForkServer,
    environment: Readonly<Record<string, string>>,
  ) {
    this.#settings = settings;
    this.#forkServer = forkServer;
    this.#environment = environment;
    this.#found = new Promise((resolve) => {
      this.#find = () => resolve(this.#findInTime());
      if (settings.program === 'off') this.#find();
      this.#stop.signal.addEventListener('abort', () => resolve(noSupport(STOPPED)));
    });
  }

  get support(): Promise<VideoSupport> {
    return this.#found.then(({ support }) => support);
  }

  find(): void {
    this.#find();
  }

  stop(): void {
    this.#stop.abort();
  }

  async *decode(request: DecodeRequest, signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
    const { sandbox } = await this.#found;
    if (sandbox === undefined) throw new MediaError('UNSUPPORTED_MEDIA_TYPE');
    yield* decodeFrame(this.#forkServer, this.#startIn(sandbox), request, signal);
  }

  #startIn(sandbox: Sandbox): ProgramStart {
    return { sandbox, memoryBytes: this.#settings.memoryBytes };
  }

  async #findInTime(): Promise<Found> {
    const late = AbortSignal.timeout(TRIAL_TIMEOUT_MS);
    const signal = AbortSignal.any([this.#stop.signal, late]);
    for (;;) {
      try {
        return await this.#findDecoder(signal);
      } catch (error) {
        if (late.aborted) return noSupport('it did not respond in time');
        if (this.#stop.signal.aborted) return noSupport(STOPPED);
        if (!isOverload(error)) return noSupport(formatCauses(error).slice(2));
        await setTimeout(RETRY_MS);
      }
    }
  }

  async #findDecoder(signal: AbortSignal): Promise<Found> {
    const { program, mayBeWeaker, timeoutMs } = this.#settings;
    const environment = this.#environment;
    if (program === 'off') return noSupport('VIDEO_DECODER is off', false);
    let found: string;
    try {
      found = findOnPath(program === 'auto' ? 'ffmpeg' : program, environment.PATH);
    } catch (error) {
      return noSupport(formatCauses(error).slice(2), program !== 'auto');
    }
    const path = await realpath(found).catch(() => undefined);
    if (path === undefined) return noSupport(`${found} does not exist`);
    const maxCpuSeconds = Math.ceil(timeoutMs / 1000);
    const refusals: string[] = [];
    const decoder = { path, environment, maxCpuSeconds };
    for (const sandbox of await listDecoderSandboxes(decoder, mayBeWeaker, refusals)) {
      const { refusal, version } = await this.#try(sandbox, signal);
      if (version !== undefined) {
        const confinement = confinementBy(sandbox, refusals);
        const isWhole = listExposures(confinement).length === 0;
        const support = {
          isSupported: true as const,
          program: found,
          version,
          isWhole,
          ...confinement,
        };
        return { sandbox, support };
      }
      refusals.push(`${sandbox.name}: ${refusal}`);
    }
    const advice = mayBeWeaker
      ? ''
      : ` (VIDEO_DECODER_CONFINEMENT=best would allow a weaker sandbox)`;
    return noSupport(`${found} cannot be used: ${refusals.join('; ')}${advice}`);
  }

  /** Returns the version of a decoder that works in a sandbox, or the reason why it does not. */
  async #try(
    sandbox: Sandbox,
    signal: AbortSignal,
  ): Promise<{ readonly version?: string; readonly refusal?: string }> {
    const lines: string[] = [];
    const listing = {
      ...this.#startIn(sandbox),
      args: ['-decoders'],
      input: Buffer.alloc(0),
      maxOutputBytes: MAX_LIST_BYTES,
      onLine: (line: string) => lines.push(line),
    };
    try {
      const list = await buffer(runProgram(this.#forkServer, listing, signal));
      const known = new Set(
        [...list.toString().matchAll(/^ V\S{5} (\S+)/gm)].map(([, name]) => name),
      );
      const missing = Object.values(codecs).flatMap(([, name]) => (known.has(name) ? [] : [name]));
      if (missing.length > 0) return { refusal: `it lacks the decoders ${missing.join(', ')}` };
      const frame = await buffer(
        decodeFrame(this.#forkServer, this.#startIn(sandbox), TRIAL_FRAME, signal),
      );
      if (!frame.toString('latin1').startsWith('YUV4MPEG2 W16 H16 ')) {
        return { refusal: 'it decodes nothing' };
      }
    } catch (error) {
      signal.throwIfAborted();
      if (isOverload(error)) throw error;
      const reason = error instanceof MediaError ? error.cause : error;
      const refusal = reason instanceof Error ? reason.message : String(reason);
      return { refusal: [refusal, ...lines.slice(0, 1)].join(': ') };
    }
    const [, version = 'of an unknown version'] = /\bversion (\S+)/.exec(lines.join('\n')) ?? [];
    return { version };
  }
}

function isOverload(error: unknown): boolean {
  return error instanceof MediaError && error.code === 'OVERLOADED';
}

function noSupport(reason: string, isFault = true): Found {
  return { support: { isSupported: false, reason, isFault } };
}

export function describeVideoSupport(support: VideoSupport): string {
  if (!support.isSupported) return `Videos have no posters: ${support.reason}`;
  const { program, version } = support;
  return `Videos have posters by ${program} ${version}, ${describeConfinement(support, 'it')}`;
}
