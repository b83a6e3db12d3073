/**
 * Bundles the libraries of the package, `dist/client`: no file of the service is loaded with them. Runs behind `tsc`,
 * whose output has the tables of the contract.
 */
import { readdir, rm } from 'node:fs/promises';
import { build } from 'rolldown';
import * as tables from '../dist/client/tables.js';

const directory = 'dist/client';
for (const file of await readdir(directory)) {
  if (/\.js(\.map)?$/.test(file)) await rm(`${directory}/${file}`);
}

const constants = Object.entries(tables)
  .map(([name, value]) => `export const ${name} = ${JSON.stringify(value)};`)
  .join('\n');

await build({
  input: ['urls', 'signing', 'admin'].map((name) => `src/client/${name}.ts`),
  platform: 'neutral',
  plugins: [
    {
      name: 'tables',
      load: (id) => (id.endsWith('/client/tables.ts') ? constants : undefined),
    },
  ],
  output: { dir: directory, sourcemap: true, chunkFileNames: '[name].js' },
  logLevel: 'warn',
});
