import { Readable } from 'node:stream';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  type ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
} from '@aws-sdk/client-s3';
import type {
  ObjectBody,
  ObjectPart,
  SharedObject,
  SharedObjects,
  WriteCondition,
} from '../../pipeline/blocks/ports.ts';
import {
  createS3Client,
  etagOf,
  findS3Cause,
  inTime,
  readS3Failure,
  type S3ConnectionOptions,
} from './client.ts';
import { listObjects } from './listing.ts';

/** Address of the list, and connection settings of its server. */
export interface S3ObjectsOptions extends S3ConnectionOptions {
  readonly bucket: string;
  readonly key: string;
  /** Deadline of a request, retries included, in milliseconds; large bodies get more time. */
  readonly timeoutMs: number;
}

/** Slowest pace of a large body, 1 MiB/s: its deadline grows with its length. */
const MIN_BYTES_PER_MS = 1_049;

/** Shared objects in a bucket of S3, or of a server with the same protocol, beside the key of the list. */
export class S3Objects implements SharedObjects {
  readonly #client: S3Client;
  readonly #options: S3ObjectsOptions;
  /** Whether tags are quoted in conditions: Ceph 16 compares them as text, without quotes. */
  #hasQuotes = true;

  constructor(options: S3ObjectsOptions) {
    this.#client = createS3Client(options);
    this.#options = options;
  }

  async read(name: string, part?: ObjectPart): Promise<SharedObject | undefined> {
    const Range = part && `bytes=${part.first}-${part.first + part.lengthBytes - 1}`;
    const command = new GetObjectCommand({ ...this.#placeOf(name), Range });
    try {
      return await this.#within(part?.lengthBytes ?? 0, async (abortSignal) => {
        const response = await this.#client.send(command, { abortSignal });
        const bytes = (await response.Body?.transformToByteArray()) ?? new Uint8Array();
        const size = /\/(\d+)$/.exec(response.ContentRange ?? '')?.[1];
        return { bytes, tag: etagOf(response), sizeBytes: Number(size ?? bytes.length) };
      });
    } catch (error) {
      const { name: failure, status } = readS3Failure(error);
      if (failure === 'NoSuchKey') return undefined;
      if (status !== 416 || part === undefined) throw await this.#translate(error, name, 'read');
      // The part at the end is empty: servers have no range for it.
      const whole = await this.read(name);
      return whole && { ...whole, bytes: new Uint8Array() };
    }
  }

  async write(
    name: string,
    body: ObjectBody,
    condition: WriteCondition,
  ): Promise<string | undefined> {
    const isWhole = body instanceof Uint8Array;
    const hasQuotes = this.#hasQuotes;
    const ContentLength = isWhole ? body.length : body.sizeBytes;
    const command = new PutObjectCommand({
      ...this.#placeOf(name),
      ...(condition === 'absent'
        ? { IfNoneMatch: '*' }
        : { IfMatch: hasQuotes ? `"${condition.tag}"` : condition.tag }),
      Body: isWhole ? body : Readable.from(body.chunks(), { objectMode: false }),
      ContentLength,
      ContentType: 'application/x-ndjson',
    });
    try {
      return await this.#within(ContentLength, async (abortSignal) =>
        etagOf(await this.#client.send(command, { abortSignal })),
      );
    } catch (error) {
      const isDenied = readS3Failure(error).status === 412;
      if (!isDenied || !hasQuotes || condition === 'absent' || !isWhole) {
        return this.#settle(name, body, condition, error);
      }
      if ((await this.read(name))?.tag !== condition.tag) return undefined;
      this.#hasQuotes = false;
      return this.write(name, body, condition);
    }
  }

  /**
   * Finds out what has become of a write that the server did not confirm, by reading: the SDK repeats a request whose
   * response is lost, and the repetition meets the object of the first attempt; Ceph responds to the loser of a race
   * with HTTP 500.
   */
  async #settle(name: string, body: ObjectBody, condition: WriteCondition, error: unknown) {
    const isWhole = body instanceof Uint8Array;
    const found = await this.read(name, isWhole ? undefined : { first: 0, lengthBytes: 1 });
    if (isWhole && found !== undefined && Buffer.compare(found.bytes, body) === 0) return found.tag;
    const expected = condition === 'absent' ? undefined : condition.tag;
    if (found?.tag !== expected) return undefined;
    throw await this.#translate(error, name, 'written');
  }

  async list(prefix: string): Promise<readonly string[]> {
    const { bucket, key } = this.#options;
    const start = `${key}.`;
    const send = (command: ListObjectsV2Command) =>
      this.#within(0, (abortSignal) => this.#client.send(command, { abortSignal }));
    try {
      const names: string[] = [];
      for await (const object of listObjects(bucket, start + prefix, send)) {
        names.push(object.key.slice(start.length));
      }
      return names;
    } catch (error) {
      throw await this.#translate(error, prefix, 'listed');
    }
  }

  async remove(name: string): Promise<void> {
    const command = new DeleteObjectCommand(this.#placeOf(name));
    try {
      await this.#within(0, (abortSignal) => this.#client.send(command, { abortSignal }));
    } catch (error) {
      throw await this.#translate(error, name, 'removed');
    }
  }

  #placeOf(name: string) {
    const { bucket, key } = this.#options;
    return { Bucket: bucket, Key: name === '' ? key : `${key}.${name}` };
  }

  #within<Result>(bytes: number, work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    return inTime(this.#options.timeoutMs + bytes / MIN_BYTES_PER_MS, work);
  }

  async #translate(error: unknown, name: string, verb: string): Promise<Error> {
    const cause = await findS3Cause(this.#client, error);
    return new Error(`${this.#placeOf(name).Key} cannot be ${verb}.`, { cause });
  }
}
