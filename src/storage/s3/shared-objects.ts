import { IncomingMessage } from 'node:http';
import {
  MAX_OBJECT_BYTES,
  type SharedObject,
  type SharedObjects,
  type WriteCondition,
} from '../../pipeline/blocks/ports.ts';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  type ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
} from '../aws-sdk.ts';
import {
  createS3Client,
  etagOf,
  findS3Cause,
  inTime,
  readS3Failure,
  type S3Bucket,
  type S3Server,
} from './client.ts';
import { listObjects } from './listing.ts';

type Location = S3Server &
  Pick<S3Bucket, 'bucket'> & { readonly key: string; readonly timeoutMs: number };

/** Minimum rate of a body, 1 MiB/s: its deadline grows with its length. */
const MIN_BYTES_PER_MS = 1_049;

/** Shared objects in a bucket, next to the key of the block list. */
export class S3Objects implements SharedObjects {
  readonly #client: S3Client;
  readonly #location: Location;
  /** Whether tags are quoted in conditions: Ceph 16 compares them as text, without quotes. */
  #hasQuotes = true;

  constructor(location: Location) {
    this.#client = createS3Client(location);
    this.#location = location;
  }

  async read(name: string): Promise<SharedObject | undefined> {
    const command = new GetObjectCommand(this.#addressOf(name));
    try {
      const response = await this.#within(0, (abortSignal) =>
        this.#client.send(command, { abortSignal }),
      );
      const { Body, ContentLength = 0 } = response;
      if (!(Body instanceof IncomingMessage)) throw new Error('The response has no body.');
      try {
        if (ContentLength > MAX_OBJECT_BYTES) {
          throw new Error(`The object exceeds ${MAX_OBJECT_BYTES} bytes.`);
        }
        const bytes = await this.#within(ContentLength, () => Body.transformToByteArray());
        return { bytes, tag: etagOf(response) };
      } finally {
        Body.destroy();
      }
    } catch (error) {
      if (readS3Failure(error).name === 'NoSuchKey') return undefined;
      throw await this.#translate(error, name, 'read');
    }
  }

  async findTag(name: string): Promise<string | undefined> {
    const command = new HeadObjectCommand(this.#addressOf(name));
    try {
      return await this.#within(0, async (abortSignal) =>
        etagOf(await this.#client.send(command, { abortSignal })),
      );
    } catch (error) {
      // A HEAD response does not show whether the key or the bucket is missing.
      if (readS3Failure(error).status === 404) return (await this.read(name))?.tag;
      throw await this.#translate(error, name, 'read');
    }
  }

  async write(
    name: string,
    bytes: Uint8Array,
    condition: WriteCondition,
  ): Promise<string | undefined> {
    const hasQuotes = this.#hasQuotes;
    const command = new PutObjectCommand({
      ...this.#addressOf(name),
      ...(condition === 'absent'
        ? { IfNoneMatch: '*' }
        : { IfMatch: hasQuotes ? `"${condition.tag}"` : condition.tag }),
      Body: bytes,
      ContentLength: bytes.length,
      ContentType: 'application/x-ndjson',
    });
    try {
      return await this.#within(bytes.length, async (abortSignal) =>
        etagOf(await this.#client.send(command, { abortSignal })),
      );
    } catch (error) {
      const isDenied = readS3Failure(error).status === 412;
      if (!isDenied || !hasQuotes || condition === 'absent') {
        return this.#resolveWrite(name, bytes, condition, error);
      }
      if ((await this.findTag(name)) !== condition.tag) return undefined;
      this.#hasQuotes = false;
      return this.write(name, bytes, condition);
    }
  }

  /**
   * Reads the outcome of a write that the server did not confirm: after a lost response, the SDK's retry finds the
   * object of its first attempt; Ceph responds to the loser of a race with HTTP 500.
   */
  async #resolveWrite(name: string, bytes: Uint8Array, condition: WriteCondition, error: unknown) {
    const found = await this.read(name);
    if (found !== undefined && Buffer.compare(found.bytes, bytes) === 0) return found.tag;
    const expected = condition === 'absent' ? undefined : condition.tag;
    // S3 returns 409 for one of two concurrent writes ("ConditionalRequestConflict"); the caller retries.
    const isConflict = readS3Failure(error).status === 409;
    if (found?.tag !== expected || isConflict) return undefined;
    throw await this.#translate(error, name, 'written');
  }

  async list(prefix: string): Promise<readonly string[]> {
    const { bucket, key } = this.#location;
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
    const command = new DeleteObjectCommand(this.#addressOf(name));
    try {
      await this.#within(0, (abortSignal) => this.#client.send(command, { abortSignal }));
    } catch (error) {
      throw await this.#translate(error, name, 'removed');
    }
  }

  #addressOf(name: string) {
    const { bucket, key } = this.#location;
    return { Bucket: bucket, Key: name === '' ? key : `${key}.${name}` };
  }

  #within<Result>(bytes: number, work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    return inTime(this.#location.timeoutMs + bytes / MIN_BYTES_PER_MS, work);
  }

  async #translate(error: unknown, name: string, verb: string): Promise<Error> {
    const cause = await findS3Cause(this.#client, error);
    return new Error(`${this.#addressOf(name).Key} cannot be ${verb}.`, { cause });
  }
}
