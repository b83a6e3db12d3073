import { Counter, collectDefaultMetrics, Histogram, Registry } from 'prom-client';
import { bottlenecks } from '../contract/errors.ts';
import { resourceNames } from '../contract/resources.ts';
import {
  type SignatureVerdict,
  signatureVerdicts,
} from '../contract/signing/attachment-signature.ts';
import type { CacheUse } from '../pipeline/cache-outcome.ts';
import {
  fetchOutcomes,
  type LookupCount,
  type Memory,
  type Meter,
  memories,
  type OriginMeter,
  originOutcomes,
  type ResponseClass,
  type ResponseCount,
  type ResponseMeter,
  type SiteMeter,
  type Stage,
  type UploadMeter,
} from '../pipeline/meter.ts';
import { lanes } from '../pipeline/ports.ts';
import { type Reading, registerReading } from './prometheus-gauge.ts';

/** Upper bounds of the histogram of waits, in seconds; the longest that is allowed is 5 by default. */
const WAIT_BUCKETS_SECONDS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** The same of the stages: from a look into the memory to a large file sent to a slow client. */
const STAGE_BUCKETS_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60];

const STAGES = ['store', 'origin', 'queue', 'render', 'send'] as const satisfies readonly Stage[];

/**
 * Counts for Prometheus, in its text format. What happens often is added to plain numbers, and they are folded
 * into metrics when somebody asks for them. Rates need a first value, also of what has not happened yet: all is
 * there from the start, but for the classes of responses, which are too many.
 */
export class PrometheusMeter implements Meter, ResponseMeter, OriginMeter, SiteMeter, UploadMeter {
  readonly #registry = new Registry();
  readonly #responses: (ResponseClass & ResponseCount)[] = [];
  readonly #byClass: Partial<
    Record<ResponseClass['resource'], Partial<Record<CacheUse, Record<number, ResponseCount>>>>
  > = {};
  readonly lookups: Readonly<Record<Memory, LookupCount>> = {
    results: { found: 0, missed: 0 },
    originals: { found: 0, missed: 0 },
    store: { found: 0, missed: 0 },
  };
  readonly signatures = Object.fromEntries(
    signatureVerdicts.map((verdict) => [verdict, 0]),
  ) as Record<SignatureVerdict, number>;
  readonly noteQueueWait = this.#timeBy(
    'darkroom_queue_wait_seconds',
    'How long renders have waited for a CPU slot, 0 where one was free.',
    'lane',
    lanes,
    WAIT_BUCKETS_SECONDS,
  );
  readonly noteStage = this.#timeBy(
    'darkroom_stage_seconds',
    'What a request has spent in a stage that it entered; plain hits in memory are not timed.',
    'stage',
    STAGES,
    STAGE_BUCKETS_SECONDS,
  );
  readonly noteRefusal = this.#countBy(
    'darkroom_refusals_total',
    'Requests that were turned away (503), by what there was too little of.',
    'reason',
    bottlenecks,
  );
  readonly noteLimited = this.#countBy<ResponseClass['resource']>(
    'darkroom_rate_limited_total',
    'Requests that would have been rendered, of clients that have had their share (429), by what they asked for.',
    'resource',
    resourceNames,
  );
  readonly noteOutcome = this.#countBy(
    'darkroom_origin_reads_total',
    'Reads from the origin, probes included, by what they have come to.',
    'outcome',
    originOutcomes,
  );
  readonly noteReadBytes = this.#count(
    'darkroom_origin_read_bytes_total',
    'Bytes of bodies that the origin has sent.',
  );
  readonly noteBrokenBody = this.#count(
    'darkroom_origin_broken_bodies_total',
    'Bodies that the origin has begun to send, and not ended.',
  );
  readonly noteFetch = this.#countBy(
    'darkroom_external_fetches_total',
    'Fetches from other sites, by what they have come to or why they were refused.',
    'outcome',
    fetchOutcomes,
  );
  readonly noteUploadedBytes = this.#count(
    'darkroom_upload_received_bytes_total',
    'Bytes of uploads that have come, be they stored in the end or not.',
  );

  constructor() {
    this.#registerResponses();
    this.watch([
      {
        name: 'darkroom_cache_hits_total',
        help: 'Looks into a cache that have found what was looked for, be it current or not.',
        label: 'cache',
        read: () => this.#countLookups('found'),
      },
      {
        name: 'darkroom_cache_misses_total',
        help: 'Looks into a cache that have not.',
        label: 'cache',
        read: () => this.#countLookups('missed'),
      },
      {
        name: 'darkroom_attachment_signatures_total',
        help: 'Requests for attachments by what the signature of the URL is, where ATTACHMENT_SIGNING is report or enforce.',
        label: 'verdict',
        read: () => this.signatures,
      },
    ]);
  }

  /** Adds numbers that are read when somebody asks. */
  watch(readings: readonly Reading[]): void {
    for (const reading of readings) registerReading(this.#registry, reading);
  }

  /** Adds prom-client's own metrics of the process: CPU, memory, garbage collection, lag of the event loop. */
  watchProcess(): void {
    collectDefaultMetrics({ register: this.#registry });
  }

  countOf({ resource, status, cache }: ResponseClass): ResponseCount {
    // Nested, since to put a key together for each response takes longer than all else here.
    this.#byClass[resource] ??= {};
    const ofResource = this.#byClass[resource];
    ofResource[cache] ??= {};
    const ofCache = ofResource[cache];
    const known = ofCache[status];
    if (known !== undefined) return known;
    const count = { resource, status, cache, responses: 0, bodyBytes: 0 };
    ofCache[status] = count;
    this.#responses.push(count);
    return count;
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** All that was counted, in the text format of Prometheus. */
  format(): Promise<string> {
    return this.#registry.metrics();
  }

  /** A histogram for each value of a label: to look one up by its labels would take longer than to add to it. */
  #timeBy<Value extends string>(
    name: string,
    help: string,
    label: string,
    values: readonly Value[],
    buckets: number[],
  ): (value: Value, durationMs: number) => void {
    const registers = [this.#registry];
    const histogram = new Histogram({ name, help, labelNames: [label], buckets, registers });
    for (const value of values) histogram.zero({ [label]: value });
    const rows = new Map(values.map((value) => [value, histogram.labels(value)]));
    return (value, durationMs) => rows.get(value)?.observe(durationMs / 1000);
  }

  /** @param values those that are there from the start */
  #countBy<Value extends string>(
    name: string,
    help: string,
    label: string,
    values: readonly Value[],
  ): (value: Value) => void {
    const counter = new Counter({ name, help, labelNames: [label], registers: [this.#registry] });
    for (const value of values) counter.inc({ [label]: value }, 0);
    return (value) => counter.inc({ [label]: value });
  }

  #count(name: string, help: string): (count?: number) => void {
    const counter = new Counter({ name, help, registers: [this.#registry] });
    return (count) => counter.inc(count);
  }

  #registerResponses(): void {
    const responses = this.#responses;
    new Counter({
      name: 'darkroom_requests_total',
      help: 'Requests by what they asked for, status, and where the answer came from.',
      labelNames: ['resource', 'status', 'cache'],
      registers: [this.#registry],
      collect() {
        this.reset();
        for (const count of responses) {
          const { resource, status, cache } = count;
          this.inc({ resource, status, cache }, count.responses);
        }
      },
    });
    new Counter({
      name: 'darkroom_sent_bytes_total',
      help: 'Bytes of bodies that were handed over to the system, on their way to clients.',
      labelNames: ['resource'],
      registers: [this.#registry],
      collect() {
        this.reset();
        for (const { resource, bodyBytes } of responses) this.inc({ resource }, bodyBytes);
      },
    });
  }

  #countLookups(outcome: keyof LookupCount): Readonly<Record<string, number>> {
    return Object.fromEntries(memories.map((memory) => [memory, this.lookups[memory][outcome]]));
  }
}
