import { escapeSigns, picture, round, text } from '../harness/svg.ts';
import type { Call, CallKind, Stack } from './stacks.ts';

const WIDTH = 1200;
const MARGIN = 12;
const TOP = 78;
const ROW_HEIGHT = 16;
/** Width of a letter at the size of a call's name, in pixels; on average. */
const LETTER_WIDTH = 5.6;
/** What is narrower is not drawn, in pixels. */
const LEAST_WIDTH = 0.4;

const colours: Readonly<Record<CallKind, string>> = {
  darkroom: '#f2b134',
  javascript: '#f7e08b',
  node: '#9ec9e2',
  imaging: '#e98a6d',
  system: '#b9b6c9',
};

/** What the colours stand for. */
export const meanings: Readonly<Record<CallKind, string>> = {
  darkroom: 'Darkroom',
  javascript: 'other JavaScript',
  node: 'Node and V8',
  imaging: 'sharp, libvips and codecs',
  system: 'C library and kernel',
};

interface Node {
  readonly call: Call;
  samples: number;
  readonly children: Map<string, Node>;
}

/**
 * Draws a flame graph (Gregg, "The Flame Graph", 2016) as an SVG picture: a call's width is its share of the
 * samples, what it calls stands on it, and neighbours are in the order of their names.
 */
export function drawFlameGraph(title: string, subtitle: string, stacks: readonly Stack[]): string {
  const root = growTree(stacks);
  const scale = (WIDTH - 2 * MARGIN) / Math.max(1, root.samples);
  const depth = depthOf(root, scale);
  const bottom = TOP + depth * ROW_HEIGHT;
  const rows: string[] = [];
  const draw = (node: Node, x: number, level: number): void => {
    let left = x;
    const byName = [...node.children].sort(([a], [b]) => (a < b ? -1 : 1));
    for (const [, child] of byName) {
      if (child.samples * scale >= LEAST_WIDTH) {
        rows.push(drawCall(child, left, bottom - level * ROW_HEIGHT, scale, root.samples));
        draw(child, left, level + 1);
      }
      left += child.samples * scale;
    }
  };
  draw(root, MARGIN, 1);
  return picture(
    WIDTH,
    bottom + MARGIN,
    [MARGIN, title],
    [text(MARGIN, 46, subtitle), ...drawLegend(), ...rows],
  );
}

function growTree(stacks: readonly Stack[]): Node {
  const create = (call: Call): Node => ({ call, samples: 0, children: new Map() });
  const root = create({ name: 'all', kind: 'node' });
  for (const { calls, samples } of stacks) {
    let node = root;
    node.samples += samples;
    for (const call of calls) {
      const child = node.children.get(call.name) ?? create(call);
      node.children.set(call.name, child);
      child.samples += samples;
      node = child;
    }
  }
  return root;
}

function depthOf(node: Node, scale: number): number {
  const drawn = [...node.children.values()].filter(({ samples }) => samples * scale >= LEAST_WIDTH);
  return drawn.reduce((most, child) => Math.max(most, 1 + depthOf(child, scale)), 0);
}

function drawCall(
  { call, samples }: Node,
  x: number,
  y: number,
  scale: number,
  all: number,
): string {
  const width = samples * scale;
  const letters = Math.floor((width - 6) / LETTER_WIDTH);
  const label = letters < 3 ? '' : cut(call.name, letters);
  const share = `${((100 * samples) / all).toFixed(1)} %`;
  const tip = escapeSigns(`${call.name}: ${share}`);
  return `<g><title>${tip}</title><rect x="${round(x)}" y="${y}" width="${round(width)}" height="${ROW_HEIGHT - 1}" rx="1" fill="${colours[call.kind]}"/>${label === '' ? '' : text(x + 3, y + 11.5, label, 'font-size="10"')}</g>`;
}

function drawLegend(): string[] {
  const kinds = Object.keys(meanings) as CallKind[];
  return kinds.flatMap((kind, index) => {
    const x = MARGIN + index * 190;
    return [
      `<rect x="${x}" y="55" width="11" height="11" fill="${colours[kind]}"/>`,
      text(x + 16, 65, meanings[kind]),
    ];
  });
}

function cut(name: string, letters: number): string {
  return name.length <= letters ? name : `${name.slice(0, letters - 1)}…`;
}
