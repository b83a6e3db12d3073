import { realpath } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import { formatCauses, MediaError } from '../../contract/errors.ts';
import {
  type DecodeOrder,
  MAX_FRAME_PIXELS,
  maxFrameBytes,
  type VideoCodec,
} from '../../formats/video/video-facts.ts';
import { listDecoderSandboxes } from '../confinement/decoder-sandbox.ts';
import {
  type Confinement,
  confinementBy,
  describeConfinement,
  listExposures,
} from '../confinement/report.ts';
import { findOnPath, type Sandbox } from '../confinement/sandbox.ts';
import type { ForkServer } from '../fork-server/client.ts';
import type { FrameSource } from '../job-requests.ts';
import { overloaded } from '../worker-errors.ts';
import { ProgramFault, runProgram } from './program-run.ts';

export interface VideoDecoderSettings {
  /** `auto`: the `ffmpeg` on `PATH`; or a path. */
  readonly program: 'auto' | 'off' | (string & {});
  /** Whether a sandbox may be used that does not meet contract §12 in full. */
  readonly mayBeWeaker: boolean;
  /** Private memory of one process (contract §12). */
  readonly memoryBytes: number;
  /** CPU time of one process. */
  readonly timeoutMs: number;
}

const codecs: Readonly<Record<VideoCodec, readonly [format: string, decoder: string]>> = {
  h264: ['h264', 'h264'],
  hevc: ['hevc', 'hevc'],
  vp8: ['ivf', 'vp8'],
  vp9: ['ivf', 'vp9'],
  av1: ['ivf', 'libdav1d'],
};

/**
 * Lines of the programs that start the decoder, of the loader, and of starts of threads: the machine was short of
 * processes, namespaces, descriptors or threads.
 */
const NOT_RUN =
  /^(bwrap|sh|setpriv|nice|env): |error while loading shared libraries: |(creat|start)ing thread|pthread_create/i;

/** Labels 8-bit planes of green, blue and red as luma and chroma, as matrix 0 does (ITU-T H.273). */
const RENAME_RGB = ['-vf', 'mergeplanes=0x000102:yuv444p'];

/** Longest list of decoders; Debian's ffmpeg lists 29 kB. */
const MAX_LIST_BYTES = 1024 ** 2;

/** Time for all trials, in milliseconds; they take 0.3 s on an idle machine. */
const TRIAL_TIMEOUT_MS = 30_000;

/** Time until the next trial if the machine could start no process, in milliseconds. */
const RETRY_MS = 1_000;

const STOPPED = 'the service stops';

/** A grey H.264 picture of 16 × 16 pixels. */
const TRIAL_ORDER: DecodeOrder = {
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
      /** Whether each process is confined whole (contract §12). */
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
  /** `undefined` without support. */
  readonly sandbox?: Sandbox;
}

/**
 * Runs ffmpeg as a process for each frame: its decoders cover all codecs, and were often attacked. It receives one
 * elementary stream, and returns planes as coded, without a conversion.
 */
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

  /** Tries the decoder in the background. */
  find(): void {
    this.#find();
  }

  stop(): void {
    this.#stop.abort();
  }

  async *decode(order: DecodeOrder, signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
    const { sandbox } = await this.#found;
    if (sandbox === undefined) throw new MediaError('UNSUPPORTED_MEDIA_TYPE');
    try {
      yield* this.#decodeIn(sandbox, order, signal);
    } catch (error) {
      if (!lacksName(error)) throw error;
      yield* this.#decodeRgb(sandbox, order, signal);
    }
  }

  /** Decodes a frame of green, blue and red planes, which Y4M cannot name. */
  async *#decodeRgb(
    sandbox: Sandbox,
    order: DecodeOrder,
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array, void> {
    try {
      yield* this.#decodeIn(sandbox, order, signal, RENAME_RGB);
    } catch (error) {
      const isOther = error instanceof MediaError && error.code === 'UNPROCESSABLE_MEDIA';
      throw isOther ? new MediaError('UNSUPPORTED_MEDIA_TYPE', { cause: error.cause }) : error;
    }
  }

  async *#decodeIn(
    sandbox: Sandbox,
    { codec, stream, size }: DecodeOrder,
    signal: AbortSignal,
    filter: readonly string[] = [],
  ): AsyncGenerator<Uint8Array, void> {
    const lines: string[] = [];
    const [format, decoder] = codecs[codec];
    const run = {
      sandbox,
      memoryBytes: this.#settings.memoryBytes,
      args: [
        ...['-hide_banner', '-loglevel', 'error', '-nostdin', '-protocol_whitelist', 'pipe'],
        ...['-threads', '1', '-xerror', '-err_detect', 'explode'],
        ...['-max_pixels', String(MAX_FRAME_PIXELS)],
        ...['-f', format, '-c:v', decoder, '-i', 'pipe:0'],
        ...['-map', '0:v:0', '-frames:v', '1', ...filter, '-filter_threads', '1'],
        ...['-c:v', 'wrapped_avframe', '-strict', '-1', '-f', 'yuv4mpegpipe', 'pipe:1'],
      ],
      input: stream,
      maxOutputBytes: maxFrameBytes(size),
      onLine: (line: string) => lines.push(line),
    };
    try {
      yield* runProgram(this.#forkServer, run, signal);
    } catch (error) {
      if (!(error instanceof ProgramFault)) throw error;
      const shortage = lines.find((line) => NOT_RUN.test(line));
      if (shortage !== undefined) throw overloaded(shortage);
      const cause = new Error([`The video decoder failed: ${error.message}`, ...lines].join('\n'));
      throw new MediaError('UNPROCESSABLE_MEDIA', { cause });
    }
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
      sandbox,
      memoryBytes: this.#settings.memoryBytes,
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
      const frame = await buffer(this.#decodeIn(sandbox, TRIAL_ORDER, signal));
      if (!frame.toString('latin1').startsWith('YUV4MPEG2 W16 H16 ')) {
        return { refusal: 'it decodes nothing' };
      }
    } catch (error) {
      signal.throwIfAborted();
      if (isOverload(error)) throw error;
      const reason = error instanceof MediaError ? error.cause : error;
      const [fault, line] = [reason instanceof Error ? reason.message : String(reason), lines[0]];
      return { refusal: line === undefined ? fault : `${fault}: ${line}` };
    }
    const [, version = 'of an unknown version'] = /\bversion (\S+)/.exec(lines.join('\n')) ?? [];
    return { version };
  }
}

/** Whether Y4M has no name for the format of a decoded frame; nothing has been written then. */
function lacksName(error: unknown): boolean {
  return (
    error instanceof MediaError &&
    error.cause instanceof Error &&
    error.cause.message.includes('yuv4mpeg can only handle')
  );
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
