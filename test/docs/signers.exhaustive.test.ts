import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import { checkCapability, readRelayKey } from '../../src/contract/signing/relay-capability.ts';
import { SigningKeys } from '../../src/contract/signing/signing-keys.ts';
import { attachmentVectors } from '../../tools/documents/attachment-vectors.ts';
import { externalVectors } from '../../tools/documents/external-vectors.ts';
import { uploadVectors } from '../../tools/documents/upload-vectors.ts';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';

/** Signers of one kind of URL in docs/signing.md, with their expected results. */
interface Signers {
  readonly kind: string;
  /** Name of the function in TypeScript; Python and PHP use snake case. */
  readonly name: string;
  /** Call of the function with the arguments `row`, in Go. */
  readonly go: string;
  readonly calls: readonly (readonly unknown[])[];
  readonly expected: readonly string[];
  /** Part of a signed path to compare; by default, all of it. */
  readonly comparable?: (path: string) => string;
}

const inSnakeCase = (name: string): string => name.replace(/[A-Z]/, '_$&').toLowerCase();

/** Writes the document's code to files, with a program that reads calls and prints results as JSON. */
type WriteFiles = (code: string, signers: Signers) => Readonly<Record<string, string>>;

const languages: readonly [language: string, command: readonly string[], WriteFiles][] = [
  [
    'python',
    ['python3', 'sign.py'],
    (code, { name }) => ({
      'sign.py': `${code}
import json, sys
print(json.dumps([${inSnakeCase(name)}(*row) for row in json.load(sys.stdin)]))
`,
    }),
  ],
  [
    'go',
    ['go', 'run', 'sign.go', 'main.go'],
    (code, { go }) => ({
      'sign.go': code.replace('package media', 'package main'),
      'main.go': `package main

import (
	"encoding/json"
	"os"
)

func must(path string, err error) string {
	if err != nil {
		panic(err)
	}
	return path
}

func main() {
	var rows [][]any
	if err := json.NewDecoder(os.Stdin).Decode(&rows); err != nil {
		panic(err)
	}
	paths := []string{}
	for _, row := range rows {
		paths = append(paths, ${go})
	}
	json.NewEncoder(os.Stdout).Encode(paths)
}
`,
    }),
  ],
  [
    'php',
    ['php', 'sign.php'],
    (code, { name }) => ({
      'sign.php': `<?php
${code}
$rows = json_decode(stream_get_contents(STDIN), true);
echo json_encode(array_map(fn ($row) => ${inSnakeCase(name)}(...$row), $rows));
`,
    }),
  ],
];

const document = 'docs/signing.md';

/** Tests the signers of one kind in each installed language. */
function testSigners(signers: Signers): void {
  const { kind, name, calls, expected, comparable: of = (path) => path } = signers;
  const text = readFileSync(document, 'utf8');
  const codeOf = (language: string): string =>
    new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'ms').exec(text)?.[1] ??
    expect.fail(`${document} has no ${language}`);
  const expectSigned = (paths: readonly string[]) =>
    expect(paths.map(of)).toEqual(expected.map(of));

  describe(`the signers of ${kind} in ${document}`, () => {
    test('in TypeScript', async () => {
      const directory = await useTemporaryDirectory();
      await directory.put('sign.ts', codeOf('ts'));
      const functions = await import(pathToFileURL(join(directory.path, 'sign.ts')).href);
      expectSigned(calls.map((row) => functions[name](...row)));
    });

    for (const [language, [program = '', ...args], filesOf] of languages) {
      const version = language === 'go' ? 'version' : '--version';
      const isThere = spawnSync(program, [version]).status === 0;
      // The first compilation is slow.
      const name = isThere ? `in ${language}` : `in ${language}: ${program} is not installed`;
      test.skipIf(!isThere)(name, { timeout: 120_000 }, async () => {
        const directory = await useTemporaryDirectory();
        const files = Object.entries(filesOf(codeOf(language), signers));
        for (const [file, content] of files) await directory.put(file, content);
        const run = spawnSync(program, args, {
          cwd: directory.path,
          input: JSON.stringify(calls),
          encoding: 'utf8',
        });
        expect(run.stderr).toBe('');
        expectSigned(JSON.parse(run.stdout));
      });
    }
  });
}

const urls = [...externalVectors.accepted, ...externalVectors.forbidden];

testSigners({
  kind: 'external',
  name: 'signExternal',
  go: 'SignExternal(row[0].(string), row[1].(string))',
  calls: urls.map((vector) => [vector.url, 'key' in vector ? vector.key : externalVectors.keys[0]]),
  expected: urls.map((vector) => ('opaque' in vector ? vector.opaque : vector.path)),
});

const { signed } = attachmentVectors;

testSigners({
  kind: 'attachments',
  name: 'signAttachment',
  go: 'SignAttachment(row[0].(string), row[1].(string), int64(row[2].(float64)))',
  calls: signed.map(({ attachment, key, now }) => [attachment, key, now]),
  expected: signed.map(({ url }) => url),
  // A name has several valid encodings.
  comparable: (url) => {
    const [path = '', query = ''] = url.split(/\?(.*)/s);
    return `${path.split('/').map(decodeURIComponent).join('/')} ${query}`;
  },
});

testSigners({
  kind: 'uploads',
  name: 'signUpload',
  go: 'must(SignUpload(row[0].(map[string]any), row[1].(string)))',
  calls: uploadVectors.signed.map(({ fields, key }) => [fields, key]),
  expected: uploadVectors.signed.map(({ path }) => path),
  // JSON and names have several valid encodings: compares the permissions and the signing key.
  comparable: (path) => {
    const [rawPath = '', capability = ''] = path.split('?t=');
    const permitted = uploadVectors.keys.map((key) =>
      checkCapability(capability, new SigningKeys([key]), 0),
    );
    return JSON.stringify([readRelayKey(rawPath), ...permitted]);
  },
});
