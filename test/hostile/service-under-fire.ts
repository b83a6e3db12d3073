import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseTarget } from '../../src/contract/media-request.ts';
import { LatencyProbe } from '../support/processes/latency-probe.ts';
import { type MemoryPeaks, MemoryWatch } from '../support/processes/process-memory.ts';
import { type ServiceProcess, startService } from '../support/processes/service-process.ts';
import { readSample } from '../support/test-app.ts';
import { type Answer, HttpClient } from './http-client.ts';
import { ServiceLog } from './service-log.ts';

/** A request that has been answered, and how. */
export interface Shot {
  readonly target: string;
  readonly answer: Answer;
  /** The answer to somebody who has the first one already; only of a success. */
  readonly again?: Answer;
}

/** Good originals and a way to ask for each; through every encoder, still and animated. */
const GOOD: readonly (readonly [key: string, target: (id: string) => string])[] = [
  ['icons/1/ab12', (id) => `/icons/9/${id}.webp?size=64`],
  ['emojis/1', (id) => `/icons/9/${id}.png?size=32`],
  ['splashes/1/ab12', (id) => `/icons/9/${id}.jpg?size=100`],
  ['avatars/2/cd34', (id) => `/icons/9/${id}.gif?size=48`],
];

/** The real service in a process of its own, with everything about it watched. */
export class ServiceUnderFire {
  readonly #folder: string;
  readonly #service: ServiceProcess;
  readonly #memory: MemoryWatch;
  readonly #known: Buffer[];
  #goodIds = 0;
  readonly log: ServiceLog;
  readonly client: HttpClient;
  readonly probe: LatencyProbe;

  private constructor(
    folder: string,
    service: ServiceProcess,
    log: ServiceLog,
    client: HttpClient,
    known: Buffer[],
  ) {
    this.#folder = folder;
    this.#service = service;
    this.#memory = new MemoryWatch(service.pid);
    this.#known = known;
    this.log = log;
    this.client = client;
    this.probe = new LatencyProbe({
      url: `${service.origin}/icons/9/known0.webp?size=64`,
      pid: service.pid,
    });
  }

  /** Starts the service with default limits on an empty folder, and notes how it serves good images. */
  static async start(): Promise<ServiceUnderFire> {
    const folder = await mkdtemp(join(tmpdir(), 'darkroom-hostile-'));
    const log = new ServiceLog();
    const service = await startService(
      { STORAGE_DIR: folder, WORKERS: '' },
      { onOutput: log.read },
    );
    const client = new HttpClient(service.origin);
    const known: Buffer[] = [];
    for (const [index, [key, target]] of GOOD.entries()) {
      await store(folder, `icons/9/known${index}`, readSample(key));
      const { status, body } = await client.get(target(`known${index}`));
      if (status !== 200) throw new Error(`Expected a good image but received ${status}: ${body}`);
      known.push(body);
    }
    return new ServiceUnderFire(folder, service, log, client, known);
  }

  get pid(): number {
    return this.#service.pid;
  }

  get peaks(): MemoryPeaks {
    return this.#memory.total;
  }

  /** Peaks since it was asked last. */
  takePeaks(): MemoryPeaks {
    return this.#memory.takeRecent();
  }

  /** Puts an original where a target leads to, asks for it, and takes it away again. */
  async shoot(original: Buffer, target: string): Promise<Shot> {
    const parsed = parseTarget(target);
    if (parsed.kind !== 'media') throw new Error(`Expected a media path but received ${target}`);
    const file = await store(this.#folder, parsed.request.originKey, original);
    try {
      const answer = await this.client.get(target);
      const { etag } = answer.headers;
      if (etag === undefined) return { target, answer };
      const again = await this.client.get(target, { 'if-none-match': etag });
      return { target, answer, again };
    } finally {
      await rm(file);
    }
  }

  /** Asks for good images that nobody has asked for, each made to the last byte as before the fire. */
  async findFaultsOfGoodImages(): Promise<string[]> {
    const faults: string[] = [];
    for (const [index, [key, target]] of GOOD.entries()) {
      this.#goodIds += 1;
      const { answer } = await this.shoot(readSample(key), target(`good${this.#goodIds}`));
      const isSame = this.#known[index]?.equals(answer.body) ?? false;
      if (!isSame) faults.push(`${key} is answered with ${answer.status}, or with other bytes`);
    }
    return faults;
  }

  async stop(): Promise<void> {
    this.#memory.stop();
    await this.probe.stop();
    this.client.close();
    await this.#service.stop();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

async function store(folder: string, key: string, bytes: Buffer): Promise<string> {
  const file = join(folder, key);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, bytes);
  return file;
}
