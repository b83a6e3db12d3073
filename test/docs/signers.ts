import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import { useTemporaryFolder } from '../support/temporary-folder.ts';

/** Signers of one kind of URL in docs/signing.md, and what they must make. */
interface Signers {
  readonly kind: string;
  /** Arguments of each call, as text. */
  readonly calls: readonly (readonly string[])[];
  readonly expected: readonly string[];
  /** What of a signed path is compared; all of it, unless said. */
  readonly comparable?: (path: string) => string;
  /** Calls the function of the document with the arguments `row`, in each language. */
  readonly call: {
    readonly ts: (functions: Readonly<Record<string, unknown>>, row: readonly string[]) => string;
    readonly python: string;
    readonly go: string;
    readonly php: string;
  };
}

/** A language: how a program is run that has the document's code, takes calls as JSON, and gives JSON. */
interface Language {
  readonly name: 'python' | 'go' | 'php';
  readonly program: string;
  readonly args: readonly string[];
  readonly files: (code: string, call: string) => Readonly<Record<string, string>>;
}

const languages: readonly Language[] = [
  {
    name: 'python',
    program: 'python3',
    args: ['sign.py'],
    files: (code, call) => ({
      'sign.py': `${code}
import json, sys
print(json.dumps([${call} for row in json.load(sys.stdin)]))
`,
    }),
  },
  {
    name: 'go',
    program: 'go',
    args: ['run', 'sign.go', 'main.go'],
    files: (code, call) => ({
      'sign.go': code.replace('package media', 'package main'),
      'main.go': `package main

import (
	"encoding/json"
	"os"
	"strconv"
)

func number(text string) int64 {
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return value
}

func object(text string) map[string]any {
	var value map[string]any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		panic(err)
	}
	return value
}

func must(path string, err error) string {
	if err != nil {
		panic(err)
	}
	return path
}

func main() {
	var rows [][]string
	if err := json.NewDecoder(os.Stdin).Decode(&rows); err != nil {
		panic(err)
	}
	paths := []string{}
	for _, row := range rows {
		paths = append(paths, ${call})
	}
	json.NewEncoder(os.Stdout).Encode(paths)
}
`,
    }),
  },
  {
    name: 'php',
    program: 'php',
    args: ['sign.php'],
    files: (code, call) => ({
      'sign.php': `<?php
${code}
$rows = json_decode(stream_get_contents(STDIN), true);
echo json_encode(array_map(fn ($row) => ${call}, $rows));
`,
    }),
  },
];

const document = 'docs/signing.md';

/** Runs the signers of one kind, in each language that this machine has. */
export function testSigners({ kind, calls, expected, comparable, call }: Signers): void {
  const text = readFileSync(document, 'utf8');
  const codeOf = (language: string): string =>
    new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'ms').exec(text)?.[1] ??
    expect.fail(`${document} has no ${language}`);
  const expectSigned = (paths: readonly string[]): void => {
    const of = comparable ?? ((path) => path);
    expect(paths.map(of)).toEqual(expected.map(of));
  };

  describe(`the signers of ${kind} in ${document}`, () => {
    test('in TypeScript', async () => {
      const folder = await useTemporaryFolder();
      await folder.put('sign.ts', codeOf('ts'));
      const functions = await import(pathToFileURL(join(folder.path, 'sign.ts')).href);
      expectSigned(calls.map((row) => call.ts(functions, row)));
    });

    for (const { name: language, program, args, files } of languages) {
      const version = language === 'go' ? 'version' : '--version';
      const isThere = spawnSync(program, [version]).status === 0;
      // A compiler takes its time, once.
      const name = isThere ? `in ${language}` : `in ${language}: ${program} is not installed`;
      test.skipIf(!isThere)(name, { timeout: 120_000 }, async () => {
        const folder = await useTemporaryFolder();
        const code = files(codeOf(language), call[language]);
        for (const [file, content] of Object.entries(code)) await folder.put(file, content);
        const run = spawnSync(program, args, {
          cwd: folder.path,
          input: JSON.stringify(calls),
          encoding: 'utf8',
        });
        expect(run.stderr).toBe('');
        expectSigned(JSON.parse(run.stdout));
      });
    }
  });
}
