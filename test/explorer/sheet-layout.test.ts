import { expect, test } from 'vitest';
import { clampPan } from '../../src/explorer/page/compare/pan.ts';
import { findNextFrame } from '../../src/explorer/page/sheet/sheet-layout.ts';

//  0  1  2  3      7   8     11 12 13 14
//  4  5  6         9  10
const groups = [
  { frames: 7, columns: 4 },
  { frames: 4, columns: 2 },
  { frames: 4, columns: 4 },
];

test.each([
  [0, 'ArrowRight', 1],
  [6, 'ArrowRight', 7],
  [7, 'ArrowLeft', 6],
  [0, 'ArrowLeft', undefined],
  [14, 'ArrowRight', undefined],
  [1, 'ArrowDown', 5],
  [3, 'ArrowDown', 6], // the row is shorter
  [4, 'ArrowDown', 7],
  [6, 'ArrowDown', 8],
  [10, 'ArrowDown', 13],
  [12, 'ArrowDown', undefined],
  [13, 'ArrowUp', 10],
  [8, 'ArrowUp', 6],
  [7, 'ArrowUp', 4],
  [5, 'ArrowUp', 1],
  [2, 'ArrowUp', undefined],
  [5, 'Home', 0],
  [5, 'End', 14],
  [14, 'End', undefined],
  [5, 'Enter', undefined],
])('from frame %i, %s goes to %s', (index, key, next) => {
  expect(findNextFrame(groups, index, key)).toBe(next);
});

test('a group without frames is passed over', () => {
  const [first, , last] = groups;
  if (first === undefined || last === undefined) throw new Error('no groups');
  expect(findNextFrame([first, { frames: 0, columns: 3 }, last], 4, 'ArrowDown')).toBe(7);
});

test('a picture is moved as far as it is larger than its view', () => {
  const overhang = { x: 100, y: -20 };
  expect(clampPan({ x: 30, y: 30 }, overhang)).toEqual({ x: 30, y: 0 });
  expect(clampPan({ x: 60, y: 0 }, overhang)).toEqual({ x: 50, y: 0 });
  expect(clampPan({ x: -80, y: 3 }, overhang)).toEqual({ x: -50, y: 0 });
});
