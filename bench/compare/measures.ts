import { formatBytes, formatMs, formatShare, quantile } from '../harness/report.ts';

/** One thing that is measured in a turn. */
interface Measure {
  /** Heading of its column. */
  readonly title: string;
  /** Which of two values is the better one. */
  readonly better: 'more' | 'less';
  readonly format: (value: number) => string;
}

const share = (value: number): string => formatShare(value, 1);

/** All that is measured, in the order of the report. CPU and memory are of a server and its children. */
export const measures = {
  perSecond: {
    title: 'Responses/s',
    better: 'more',
    format: (value) => value.toFixed(value < 100 ? 1 : 0),
  },
  cpuMsEach: { title: 'CPU each', better: 'less', format: formatMs },
  mainCpuMsEach: { title: 'of it the first process', better: 'less', format: formatMs },
  /** Of the whole machine, with what makes the load. */
  idleShare: { title: 'Idle', better: 'less', format: share },
  p50Ms: { title: 'p50', better: 'less', format: formatMs },
  p99Ms: { title: 'p99', better: 'less', format: formatMs },
  /** The most that they ever had, each at its own time. */
  peakBytes: { title: 'Peak memory', better: 'less', format: formatBytes },
  responses: { title: 'Responses', better: 'more', format: String },
  bytesEach: { title: 'Bytes', better: 'less', format: formatBytes },
  ssimulacra2: { title: 'SSIMULACRA2', better: 'more', format: (value) => value.toFixed(1) },
  /** What the machine did beside it, as a share of its cores. */
  othersShare: { title: 'Others', better: 'less', format: share },
} satisfies Readonly<Record<string, Measure>>;

/** One of them. */
export type MeasureName = keyof typeof measures;

/** What one contestant did in one turn; absent is what could not be measured of it. */
export type Turn = Readonly<Partial<Record<MeasureName, number>>>;

/**
 * What a contestant's turns come to: their median, and how far they are apart, as a part of it. `undefined` where it was
 * not measured.
 */
export function summarize(turns: readonly Turn[], name: MeasureName) {
  const values = turns.flatMap((turn) => turn[name] ?? []);
  const value = quantile(values, 0.5);
  if (value === undefined) return undefined;
  return { value, spread: value === 0 ? 0 : (Math.max(...values) - Math.min(...values)) / value };
}

/** How much better one is than another; `least` and `most` are those of the rounds. */
export type Ratio = NonNullable<ReturnType<typeof compare>>;

/**
 * Compares two contestants by a measure: above 1 the first one is better, whichever way it counts. The value
 * is that of their medians; rounds are compared one by one, since both had them at about the same time.
 */
export function compare(turns: readonly Turn[], others: readonly Turn[], name: MeasureName) {
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
