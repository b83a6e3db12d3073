import type { Answer } from '../harness/load.ts';
import { countServed, type OverloadRun, type Phase } from './measurements.ts';

/** The load that the aims are for. */
export function greatest({ options }: OverloadRun): number {
  return Math.max(...options.factors);
}

function phasesOf({ phases }: OverloadRun, factor: number): readonly Phase[] {
  return phases.filter((phase) => phase.factor === factor);
}

/** Answers of all phases of a load, by sort; load 0 is none. */
export function hitsOf(run: OverloadRun, factor: number): readonly Answer[] {
  return phasesOf(run, factor).flatMap(({ hits }) => hits.answers);
}

/** Animated renders. */
export function heavyOf(run: OverloadRun, factor: number): readonly Answer[] {
  return phasesOf(run, factor).flatMap(({ heavy }) => heavy?.answers ?? []);
}

/** Those of them that were refused. */
export function refusedOf(run: OverloadRun, factor: number): readonly Answer[] {
  return heavyOf(run, factor).filter(({ status }) => status === 503);
}

/** Light renders that were served, a second. */
export function lightPerSecond(run: OverloadRun, factor: number): number {
  const of = phasesOf(run, factor);
  const ms = of.reduce((sum, { lengthMs }) => sum + lengthMs, 0);
  return (of.reduce((sum, { light }) => sum + countServed(light), 0) * 1000) / ms;
}

/** Answers with the image that was asked for. */
export function served(answers: readonly Answer[]): readonly Answer[] {
  return answers.filter(({ status }) => status === 200);
}

/** From question to last byte, in milliseconds. */
export function timesOf(answers: readonly Answer[]): number[] {
  return answers.map(({ totalMs }) => totalMs);
}
