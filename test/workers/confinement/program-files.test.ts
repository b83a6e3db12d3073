import { mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findModuleFiles } from '../../../src/workers/confinement/program-files.ts';
import { useTemporaryFolder } from '../../support/temporary-folder.ts';

const environment = { PATH: process.env.PATH ?? '' };

test('a program is its modules, the packages they name, and what these depend on', async () => {
  const folder = realpathSync((await useTemporaryFolder()).path);
  const write = (path: string, content: string | object): void => {
    const file = join(folder, path);
    mkdirSync(join(file, '..'), { recursive: true });
    writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
  };
  write('package.json', { type: 'module' });
  write(
    'app/entry/main.js',
    "import { a } from '../part/a.js';\nimport 'node:fs';\nimport './deeper/b.js';",
  );
  write('app/entry/deeper/b.js', "const name = require.resolve('by-require/file.wasm');");
  write('app/part/a.js', "export * from '@scope/one/sub';\nconst lazy = () => import('./c.js');");
  write('app/part/c.js', 'import "not-installed";');
  write('app/originals/secret.js', '');
  write('node_modules/by-require/package.json', {});
  write('node_modules/@scope/one/package.json', {
    dependencies: { two: '1' },
    optionalDependencies: { 'for-another-system': '1' },
  });
  write('node_modules/two/package.json', {
    devDependencies: { three: '1' },
    dependencies: { '@scope/one': '1' },
  });
  write('node_modules/three/package.json', {});
  // As pnpm lays them out.
  write('store/linked/package.json', {});
  symlinkSync('../store/linked', join(folder, 'node_modules/linked'));
  write('node_modules/by-require/package.json', { dependencies: { linked: '1' } });

  const { paths, links } = await findModuleFiles(join(folder, 'app/entry/main.js'), environment);
  expect(paths.map((path) => path.replace(`${folder}/`, ''))).toEqual([
    'app/entry',
    'app/part',
    'node_modules/@scope/one',
    'node_modules/by-require',
    'node_modules/two',
    'package.json',
    'store/linked',
  ]);
  expect([...links]).toEqual([[join(folder, 'node_modules/linked'), join(folder, 'store/linked')]]);
});
