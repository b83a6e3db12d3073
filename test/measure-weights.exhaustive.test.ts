import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { outputFormats, sourceFormats } from '../src/contract/image-formats.ts';

test('the costs of every format can be measured', () => {
  const output = execFileSync('node', ['tools/measure-weights.mjs', '--quick'], {
    encoding: 'utf8',
  });
  const measured = [...output.matchAll(/^(.*): row \[.*\] ns, measured \[\d.*, \d.*\] ns$/gm)];
  const steps = [
    ...Object.entries(sourceFormats).flatMap(([format, { reducedDecodeWeight }]) => [
      `decode ${format}`,
      ...(reducedDecodeWeight === undefined ? [] : [`decode ${format}, reduced`]),
    ]),
    ...Object.entries(outputFormats).flatMap(([format, { encodeWeights }]) =>
      Object.keys(encodeWeights).map((quality) => `encode ${format}, ${quality}`),
    ),
  ];
  expect(measured.map(([, step]) => step)).toEqual(steps);
});
