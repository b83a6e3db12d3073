import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { errorRegistry } from '../../src/contract/errors.ts';
import { documents, readCommandBlocks } from './document-commands.ts';

const rows = Object.entries(documents);
const scripts = rows.flatMap(([file, { kind }]) => (kind === 'scripts' ? [file] : []));
const withoutCommands = rows.flatMap(([file, { kind }]) => (kind === 'no commands' ? [file] : []));

describe('the commands of the documents', () => {
  test('none is left out', () => {
    const files = readdirSync('docs').filter((file) => file.endsWith('.md'));
    expect(files.sort()).toEqual(Object.keys(documents).sort());
  });

  test.each(scripts)('of docs/%s are there', (file) => {
    const known = Object.keys(JSON.parse(readFileSync('package.json', 'utf8')).scripts);
    const lines = readCommandBlocks(`docs/${file}`).flatMap(({ script }) =>
      script.trimEnd().split('\n'),
    );
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) {
      const command = line.replace(/ +#.*/, '');
      const { script, path } =
        /^(?:npm ci|npm (?:run )?(?<script>[\w:]+)(?: -- .+)?|(?:(?:UPDATE_\w+=1 )?npx vitest run(?: --project \w+)?|node(?: --\S+)*) (?<path>\S+))$/.exec(
          command,
        )?.groups ?? expect.fail(`docs/${file} has the command "${command}"`);
      if (script !== undefined) expect(known).toContain(script);
      if (path !== undefined) expect(existsSync(path), path).toBe(true);
    }
  });

  test.each(withoutCommands)('of docs/%s do not exist', (file) => {
    expect(readCommandBlocks(`docs/${file}`)).toEqual([]);
  });

  test.each(['clients.md', 'watch.md'])('the advice of docs/%s has every error', (file) => {
    const advice = readFileSync(`docs/${file}`, 'utf8');
    for (const code of Object.keys(errorRegistry)) expect(advice).toContain(`\`${code}\``);
  });
});
