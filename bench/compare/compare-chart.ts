import { type Bar, type BarGroup, drawBarChart } from '../harness/bar-chart.ts';
import type { Contest } from './contest.ts';
import { compare, measures, summarize } from './measures.ts';

/** Bars are cut off here at the latest, so that a server of files beside one that renders does not make all others small. */
const MOST = 2.5;

const OURS = '#2f6fb3';
const OURS_TOO = '#8fb4da';
const THEIRS = '#b9bec6';

/** All contests that have somebody beside Darkroom, as multiples of it. */
export function drawContests(contests: readonly Contest[]): string {
  const groups = contests.flatMap((contest) => drawContest(contest) ?? []);
  const longest = groups.flatMap(({ bars }) => bars.map(({ most }) => most));
  return drawBarChart({
    title: 'Darkroom and others',
    subtitle:
      'As multiples of Darkroom, by the figure that stands behind each bar; longer is better, whichever way that counts. Lines: all rounds.',
    mark: 1,
    most: Math.min(MOST, Math.max(1, ...longest)),
    groups,
  });
}

function drawContest({ name, measures: [deciding], entries }: Contest): BarGroup | undefined {
  const [ours] = entries;
  if (deciding === undefined || ours?.name !== 'Darkroom' || entries.length < 2) return undefined;
  const { title, format } = measures[deciding];
  const bars = entries.flatMap((entry): Bar[] => {
    const ratio = compare(entry.turns, ours.turns, deciding);
    const summary = summarize(entry.turns, deciding);
    if (ratio === undefined || summary === undefined) return [];
    const { value, least, most } = ratio;
    const label = `${format(summary.value)} (${value.toFixed(2)} ×)`;
    const colour = entry === ours ? OURS : isOurs(entry.name) ? OURS_TOO : THEIRS;
    return [{ name: entry.name, value, least, most, label, colour }];
  });
  return { title: `${name}: ${title}`, bars };
}

/** Darkroom run in another way. */
function isOurs(name: string): boolean {
  return name.startsWith('Darkroom') || name === 'a client that has it';
}
