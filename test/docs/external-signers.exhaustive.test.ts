import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import type { ExternalVectors } from '../../tools/external-vectors.ts';
import { useTemporaryFolder } from '../support/temporary-folder.ts';

const vectors: ExternalVectors = JSON.parse(readFileSync('docs/external-vectors.json', 'utf8'));

/** A signer of the document, and how to have it sign `[url, key]` pairs: JSON in, JSON out. */
interface Signer {
  readonly language: string;
  readonly program: string;
  readonly args: readonly string[];
  /** Files of the program, of the document's code. */
  readonly files: (code: string) => Readonly<Record<string, string>>;
}

const signers: readonly Signer[] = [
  {
    language: 'python',
    program: 'python3',
    args: ['sign.py'],
    files: (code) => ({
      'sign.py': `${code}
import json, sys
print(json.dumps([sign_external(url, key) for url, key in json.load(sys.stdin)]))
`,
    }),
  },
  {
    language: 'go',
    program: 'go',
    args: ['run', 'sign.go', 'main.go'],
    files: (code) => ({
      'sign.go': code.replace('package media', 'package main'),
      'main.go': `package main

import (
	"encoding/json"
	"os"
)

func main() {
	var pairs [][2]string
	if err := json.NewDecoder(os.Stdin).Decode(&pairs); err != nil {
		panic(err)
	}
	paths := []string{}
	for _, pair := range pairs {
		paths = append(paths, SignExternal(pair[0], pair[1]))
	}
	json.NewEncoder(os.Stdout).Encode(paths)
}
`,
    }),
  },
  {
    language: 'php',
    program: 'php',
    args: ['sign.php'],
    files: (code) => ({
      'sign.php': `<?php
${code}
$pairs = json_decode(stream_get_contents(STDIN), true);
echo json_encode(array_map(fn ($pair) => sign_external($pair[0], $pair[1]), $pairs));
`,
    }),
  },
];

const document = readFileSync('docs/external.md', 'utf8');
const codeOf = (language: string): string =>
  new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'ms').exec(document)?.[1] ??
  expect.fail(`docs/external.md has no ${language}`);

const expected = [...vectors.accepted, ...vectors.forbidden].map((vector) =>
  'opaque' in vector ? vector.opaque : vector.path,
);
const pairs = [...vectors.accepted, ...vectors.forbidden].map((vector) => [
  vector.url,
  'key' in vector ? vector.key : vectors.keys[0],
]);

describe('the signers of the document', () => {
  test('in TypeScript', async () => {
    const folder = await useTemporaryFolder();
    await folder.put('sign.ts', codeOf('ts'));
    const { signExternal } = await import(pathToFileURL(join(folder.path, 'sign.ts')).href);
    expect(pairs.map(([url, key]) => signExternal(url, key))).toEqual(expected);
  });

  for (const { language, program, args, files } of signers) {
    const version = language === 'go' ? 'version' : '--version';
    const isThere = spawnSync(program, [version]).status === 0;
    // A compiler takes its time, once.
    const name = isThere ? `in ${language}` : `in ${language}: ${program} is not installed`;
    test.skipIf(!isThere)(name, { timeout: 120_000 }, async () => {
      const folder = await useTemporaryFolder();
      for (const [file, content] of Object.entries(files(codeOf(language)))) {
        await folder.put(file, content);
      }
      const run = spawnSync(program, args, {
        cwd: folder.path,
        input: JSON.stringify(pairs),
        encoding: 'utf8',
      });
      expect(run.stderr).toBe('');
      expect(JSON.parse(run.stdout)).toEqual(expected);
    });
  }
});
