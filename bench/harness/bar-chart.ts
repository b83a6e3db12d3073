import { linearScale } from './chart-scale.ts';
import { line, picture, round, text } from './svg.ts';

/** One bar, with how far it may be wrong. */
export interface Bar {
  readonly name: string;
  readonly value: number;
  readonly least: number;
  readonly most: number;
  /** What stands behind it. */
  readonly label: string;
  readonly colour: string;
}

/** Bars that belong together. */
export interface BarGroup {
  readonly title: string;
  readonly bars: readonly Bar[];
}

/** What is drawn: groups below each other, all to one scale. */
export interface BarChart {
  readonly title: string;
  readonly subtitle: string;
  /** A line is drawn here. */
  readonly mark: number;
  /** Bars beyond it are cut off. */
  readonly most: number;
  readonly groups: readonly BarGroup[];
}

const WIDTH = 1100;
const LEFT = 236;
const RIGHT = 210;
const TOP = 84;
const BAR_HEIGHT = 15;
const BAR_STEP = 21;
const GROUP_GAP = 42;
const FOOT = 34;

/** Around what may stand on a line. */
const HALO = 'stroke="#fff" stroke-width="4" paint-order="stroke" stroke-linejoin="round"';

/** Draws bars as an SVG picture, light, and readable without anything else. */
export function drawBarChart({ title, subtitle, mark, most, groups }: BarChart): string {
  const tops = groups.map((_, index) =>
    groups.slice(0, index).reduce((sum, { bars }) => sum + bars.length * BAR_STEP + GROUP_GAP, TOP),
  );
  const last = groups.at(-1);
  const bottom = (tops.at(-1) ?? TOP) + (last?.bars.length ?? 0) * BAR_STEP;
  const x = linearScale(0, most, LEFT, WIDTH - RIGHT);
  return picture(
    WIDTH,
    bottom + FOOT,
    [24, title],
    [
      text(24, 46, subtitle),
      ...x.ticks.flatMap((tick) => [
        line(x.at(tick), TOP - 8, x.at(tick), bottom, '#e4e4e4'),
        text(x.at(tick), bottom + 19, `${x.format(tick)} ×`, 'text-anchor="middle"'),
      ]),
      line(x.at(mark), TOP - 8, x.at(mark), bottom, '#444', '4 3'),
      ...groups.flatMap((group, index) => drawGroup(group, tops[index] ?? TOP, most, x.at)),
    ],
  );
}

function drawGroup(
  { title, bars }: BarGroup,
  top: number,
  most: number,
  at: (value: number) => number,
): string[] {
  return [
    text(24, top - 8, title, 'font-weight="bold"'),
    ...bars.flatMap(({ name, value, least, most: upper, label, colour }, index) => {
      const y = top + index * BAR_STEP;
      const middle = y + BAR_HEIGHT / 2;
      const end = at(Math.min(value, most));
      const whiskerEnd = at(Math.min(upper, most));
      const cut = value > most ? ' »' : '';
      return [
        text(LEFT - 10, middle + 4, name, 'text-anchor="end"'),
        `<rect x="${LEFT}" y="${y}" width="${round(Math.max(1, end - LEFT))}" height="${BAR_HEIGHT}" fill="${colour}"/>`,
        line(at(Math.min(least, most)), middle, whiskerEnd, middle, '#222', undefined, 1.4),
        text(Math.max(end, whiskerEnd) + 8, middle + 4, `${label}${cut}`, HALO),
      ];
    }),
  ];
}
