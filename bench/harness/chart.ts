import { linearScale, logScale, type Scale } from './chart-scale.ts';
import { line, picture, round, text } from './svg.ts';

/** A line of a panel; a point without a value is a gap. */
export interface Series {
  readonly name: string;
  readonly colour: string;
  readonly isDashed?: boolean;
  readonly points: readonly (readonly [x: number, y: number | undefined])[];
}

/** A diagram; panels of a chart stand below each other and share their x axis. */
export interface Panel {
  readonly title: string;
  readonly unit: string;
  readonly scale: 'linear' | 'log';
  readonly series: readonly Series[];
}

/** A span of x that is shaded in every panel. */
export interface Band {
  readonly name: string;
  readonly colour: string;
  readonly spans: readonly (readonly [from: number, to: number])[];
}

/** What is drawn. */
export interface Chart {
  readonly title: string;
  readonly xTitle: string;
  readonly xMost: number;
  /** Where a logarithmic x axis begins; without it, the axis is linear and begins at 0. */
  readonly xLeast?: number;
  readonly panels: readonly Panel[];
  readonly bands: readonly Band[];
}

const WIDTH = 1100;
const PANEL_HEIGHT = 230;
const LEFT = 76;
const RIGHT = 190;
const TOP = 64;
const GAP = 52;
const LEGEND_STEP = 18;

/** Draws a chart as an SVG picture, light, and readable without anything else. */
export function drawChart(chart: Chart): string {
  const height = TOP + chart.panels.length * (PANEL_HEIGHT + GAP) + 8;
  const x =
    chart.xLeast === undefined
      ? linearScale(0, chart.xMost, LEFT, WIDTH - RIGHT)
      : logScale(chart.xLeast, chart.xMost, LEFT, WIDTH - RIGHT);
  const panels = chart.panels.map((panel, index) =>
    drawPanel(panel, chart, x, TOP + index * (PANEL_HEIGHT + GAP)),
  );
  return picture(WIDTH, height, [LEFT, chart.title], panels.flat());
}

function drawPanel(panel: Panel, chart: Chart, x: Scale, top: number): string[] {
  const bottom = top + PANEL_HEIGHT;
  const values = panel.series.flatMap(({ points }) => points.flatMap(([, y]) => y ?? []));
  const most = Math.max(...values, 0);
  const y =
    panel.scale === 'log'
      ? logScale(Math.min(...values.filter((value) => value > 0), 1), most, bottom, top)
      : linearScale(0, most, bottom, top);
  const clip = (span: readonly [number, number]): [number, number] => [
    x.at(span[0]),
    x.at(Math.min(span[1], chart.xMost)),
  ];
  return [
    ...chart.bands.flatMap(({ colour, spans }) =>
      spans
        .map(clip)
        .map(
          ([from, to]) =>
            `<rect x="${round(from)}" y="${top}" width="${round(Math.max(1, to - from))}" height="${PANEL_HEIGHT}" fill="${colour}"/>`,
        ),
    ),
    ...y.ticks.flatMap((tick) => [
      line(LEFT, y.at(tick), WIDTH - RIGHT, y.at(tick), '#ddd'),
      text(LEFT - 8, y.at(tick) + 4, y.format(tick), 'text-anchor="end"'),
    ]),
    ...x.ticks.flatMap((tick) => [
      line(x.at(tick), bottom, x.at(tick), bottom + 5, '#666'),
      text(x.at(tick), bottom + 19, x.format(tick), 'text-anchor="middle"'),
    ]),
    line(LEFT, top, LEFT, bottom, '#666'),
    line(LEFT, bottom, WIDTH - RIGHT, bottom, '#666'),
    text(LEFT, top - 9, `${panel.title}, ${panel.unit}`, 'font-weight="bold"'),
    text(WIDTH - RIGHT + 14, bottom + 19, chart.xTitle),
    ...panel.series.map((series) => drawSeries(series, x, y)),
    ...drawLegend(panel, chart, top),
  ];
}

function drawSeries({ points, colour, isDashed }: Series, x: Scale, y: Scale): string {
  let isDown = false;
  const path = points
    .map(([at, value]) => {
      // What a logarithmic axis cannot show is a gap too.
      if (value === undefined || !Number.isFinite(y.at(value))) {
        isDown = false;
        return '';
      }
      const step = `${isDown ? 'L' : 'M'}${round(x.at(at))} ${round(y.at(value))}`;
      isDown = true;
      return step;
    })
    .join('');
  const dash = isDashed === true ? ' stroke-dasharray="5 4"' : '';
  return `<path d="${path}" fill="none" stroke="${colour}" stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round"${dash}/>`;
}

function drawLegend({ series }: Panel, { bands }: Chart, top: number): string[] {
  const left = WIDTH - RIGHT + 14;
  const at = (index: number): number => top + 10 + index * LEGEND_STEP;
  return [
    ...series.flatMap(({ name, colour, isDashed }, index) => [
      line(left, at(index), left + 22, at(index), colour, isDashed === true ? '5 4' : undefined, 2),
      text(left + 28, at(index) + 4, name),
    ]),
    ...bands.flatMap(({ name, colour }, index) => [
      `<rect x="${left}" y="${at(series.length + index) - 6}" width="22" height="12" fill="${colour}"/>`,
      text(left + 28, at(series.length + index) + 4, name),
    ]),
  ];
}
