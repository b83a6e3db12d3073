import type { Bottleneck } from '../media/errors.ts';
import type { ResourceName } from '../media/media-resource.ts';
import type { CacheUse, Room } from './outcome.ts';
import type { Lane } from './ports.ts';

/** Looks into one of the memories. A plain pair of numbers, so that to count costs no more than to add. */
export interface LookUps {
  found: number;
  missed: number;
}

/** What is looked into: answers in memory, originals in memory, the store that outlives the process. */
export const memories = ['results', 'originals', 'store'] as const;
export type Memory = (typeof memories)[number];

/** Who counts what happens in the pipeline, for those who watch over the service. */
export interface Meter {
  /** To be added to by whoever looks. */
  readonly lookUps: Readonly<Record<Memory, LookUps>>;
  /** A render has got its CPU slot, after so many milliseconds; 0 where one was free. */
  noteQueueWait(lane: Lane, waitedMs: number): void;
}

/** Of what sort an answer was; each has few values, and none of them is a client's. */
export interface AnswerSort {
  /** `none`: the path is none of the contract's. */
  readonly resource: ResourceName | 'none';
  /** 499, as nginx has it, where the client has gone before there was one. */
  readonly status: number;
  readonly cache: CacheUse;
}

/** Answers of one sort, to be added to by whoever gives them. */
export interface AnswerCount {
  answers: number;
  /** Of bodies, as far as they were handed over to the system. */
  bodyBytes: number;
}

/** Where the time of a request goes: into the rooms, and into its body being taken. */
export type Stage = Room | 'send';

/** Who counts the answers. */
export interface AnswerMeter {
  /** The same object each time, for each sort: who gives many of them keeps it at hand. */
  countOf(sort: AnswerSort): AnswerCount;
  /** A request has spent so long in a stage. */
  noteStage(stage: Stage, durationMs: number): void;
  /** A request was turned away, for want of this. */
  noteRefusal(bottleneck: Bottleneck): void;
}

/**
 * What a read from the origin has come to: there is no such object; it has failed, or not answered in
 * time; or nobody waited for it any more.
 */
export const originAnswers = ['found', 'missing', 'failed', 'timeout', 'stopped'] as const;
export type OriginAnswer = (typeof originAnswers)[number];

/** Who counts what the origin does. */
export interface OriginMeter {
  noteAnswer(answer: OriginAnswer): void;
  noteReadBytes(count: number): void;
  /** A body that was begun was not sent to its end. */
  noteBrokenBody(): void;
}
