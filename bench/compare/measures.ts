import { formatBytes, formatMs, quantile } from '../harness/report.ts';

/** One thing that is measured in a turn. */
interface Measure {
  /** Heading of its column. */
  readonly title: string;
  /** Which of two values is the better one. */
  readonly better: 'more' | 'less';
  /** What stands for all turns of a contestant. */
  readonly over: 'median' | 'sum';
  readonly format: (value: number) => string;
}

const digits =
  (count: number) =>
  (value: number): string =>
    value.toFixed(count);
const short = (value: number): string => value.toFixed(value < 100 ? 1 : 0);
const more = { better: 'more', over: 'median' } as const;
const less = { better: 'less', over: 'median' } as const;

/** All that is measured. CPU and memory are of a server and its children; each contest says what it has. */
export const measures = {
  perSecond: { ...more, title: 'Responses/s', format: short },
  mebibytesPerSecond: { ...more, title: 'MiB/s', format: short },
  p50Ms: { ...less, title: 'p50', format: formatMs },
  p99Ms: { ...less, title: 'p99', format: formatMs },
  cpuSecondsPer1000: { ...less, title: 'CPU s per 1 000', format: digits(2) },
  mainCpuMsEach: { ...less, title: 'of it the first process', format: formatMs },
  cpuMsEach: { ...less, title: 'CPU each', format: formatMs },
  /** Of the whole machine, with what makes the load. */
  idleShare: { ...less, title: 'Idle', format: (value) => `${(value * 100).toFixed(0)} %` },
  bytesEach: { ...less, title: 'Bytes', format: formatBytes },
  ssimulacra2: { ...more, title: 'SSIMULACRA2', format: digits(1) },
  cpuSecondsPerGibibyte: { ...less, title: 'CPU s per GiB', format: digits(2) },
  /** The most that they ever had, each at its own time. */
  peakBytes: { ...less, title: 'Peak memory', format: formatBytes },
  cpuSeconds: { ...less, title: 'CPU s', format: digits(1) },
  mainCpuSeconds: { ...less, title: 'of it the first process', format: digits(1) },
  /** What the machine did beside it, as a share of its cores. */
  othersShare: { ...less, title: 'Others', format: (value) => `${(value * 100).toFixed(0)} %` },
  responses: { ...more, over: 'sum', title: 'Responses', format: digits(0) },
} satisfies Readonly<Record<string, Measure>>;

/** One of them. */
export type MeasureName = keyof typeof measures;

/** What one contestant did in one turn; absent is what could not be measured of it. */
export type Turn = Readonly<Partial<Record<MeasureName, number>>>;

/** A contestant's values of one measure, taken together. */
export interface Summary {
  readonly value: number;
  /** How far the turns are apart, as a part of the value. */
  readonly spread: number;
}

/** What a contestant's turns come to; `undefined` where it was not measured. */
export function summarize(turns: readonly Turn[], name: MeasureName): Summary | undefined {
  const values = turns.flatMap((turn) => turn[name] ?? []);
  const value =
    measures[name].over === 'sum'
      ? values.reduce((sum, one) => sum + one, 0)
      : quantile(values, 0.5);
  if (values.length === 0 || value === undefined) return undefined;
  return { value, spread: value === 0 ? 0 : (Math.max(...values) - Math.min(...values)) / value };
}

/** How much better one is than another; `least` and `most` are those of the rounds. */
export interface Ratio {
  readonly value: number;
  readonly least: number;
  readonly most: number;
}

/**
 * Compares two contestants by a measure: above 1 the first one is better, whichever way it counts. The value
 * is that of their medians; rounds are compared one by one, since both had them at about the same time.
 */
export function compare(
  turns: readonly Turn[],
  others: readonly Turn[],
  name: MeasureName,
): Ratio | undefined {
  const [one, other] = [summarize(turns, name), summarize(others, name)];
  if (one === undefined || other === undefined) return undefined;
  const ratioOf = (mine: number, theirs: number): number =>
    measures[name].better === 'more' ? mine / theirs : theirs / mine;
  const rounds = turns.flatMap((turn, round) => {
    const [mine, theirs] = [turn[name], others[round]?.[name]];
    return mine === undefined || theirs === undefined ? [] : ratioOf(mine, theirs);
  });
  const value = ratioOf(one.value, other.value);
  return { value, least: Math.min(value, ...rounds), most: Math.max(value, ...rounds) };
}
