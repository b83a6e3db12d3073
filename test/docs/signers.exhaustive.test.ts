import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import { readRelayKey, verifyCapability } from '../../src/contract/signing/relay-capability.ts';
import { SigningKeys } from '../../src/contract/signing/signing-keys.ts';
import { attachmentVectors } from '../../tools/documents/attachment-vectors.ts';
import { externalVectors } from '../../tools/documents/external-vectors.ts';
import { uploadVectors } from '../../tools/documents/upload-vectors.ts';
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
function testSigners({ kind, calls, expected, comparable, call }: Signers): void {
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

type Sign<Arguments extends readonly unknown[]> = (...values: Arguments) => string;

const urls = [...externalVectors.accepted, ...externalVectors.forbidden];

testSigners({
  kind: 'external',
  calls: urls.map((vector) => [
    vector.url,
    ('key' in vector ? vector.key : externalVectors.keys[0]) ?? '',
  ]),
  expected: urls.map((vector) => ('opaque' in vector ? vector.opaque : vector.path)),
  call: {
    ts: ({ signExternal }, [url = '', key = '']) =>
      (signExternal as Sign<[string, string]>)(url, key),
    python: 'sign_external(*row)',
    go: 'SignExternal(row[0], row[1])',
    php: 'sign_external($row[0], $row[1])',
  },
});

const { signed } = attachmentVectors;

testSigners({
  kind: 'attachments',
  calls: signed.map(({ attachment, key, now }) => [attachment, key, String(now)]),
  expected: signed.map(({ url }) => url),
  // A name may be encoded in more than one way.
  comparable: (url) => {
    const [path = '', query = ''] = url.split(/\?(.*)/s);
    return `${path.split('/').map(decodeURIComponent).join('/')} ${query}`;
  },
  call: {
    ts: ({ signAttachment }, [attachment = '', key = '', now = '']) =>
      (signAttachment as Sign<[string, string, number]>)(attachment, key, Number(now)),
    python: 'sign_attachment(row[0], row[1], int(row[2]))',
    go: 'SignAttachment(row[0], row[1], number(row[2]))',
    php: 'sign_attachment($row[0], $row[1], (int) $row[2])',
  },
});

testSigners({
  kind: 'uploads',
  calls: uploadVectors.signed.map(({ fields, key }) => [JSON.stringify(fields), key]),
  expected: uploadVectors.signed.map(({ path }) => path),
  // JSON and a name may be spelled in more than one way: what they permit is compared, and which key has signed it.
  comparable: (path) => {
    const [rawPath = '', capability = ''] = path.split('?t=');
    const permitted = uploadVectors.keys.map((key) =>
      verifyCapability(capability, new SigningKeys([key]), 0),
    );
    return JSON.stringify([readRelayKey(rawPath), ...permitted]);
  },
  call: {
    ts: ({ signUpload }, [fields = '', key = '']) =>
      (signUpload as Sign<[Record<string, unknown>, string]>)(JSON.parse(fields), key),
    python: 'sign_upload(json.loads(row[0]), row[1])',
    go: 'must(SignUpload(object(row[0]), row[1]))',
    php: 'sign_upload(json_decode($row[0], true), $row[1])',
  },
});
