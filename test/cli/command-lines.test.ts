import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { chmod, mkdir, readdir, symlink } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { LOCAL_CREDENTIALS, useLocalS3 } from '../support/s3/local-s3.ts';
import { type RespondScript, respondWithError, useScriptedS3 } from '../support/s3/scripted-s3.ts';
import { useDnsServer } from '../support/sites/dns-server.ts';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';
import { samples } from '../support/test-app.ts';
import { atScale } from '../support/test-scale.ts';

/** Exit status, patterns of standard output and error (`…` is any text), and stored files. Line N is test N. */
const table = readFileSync('test/cli/command-lines.tsv', 'utf8').trimEnd().split('\n');
const lines = table.map((line, index): [number, ...string[]] => [index + 1, ...line.split('\t')]);

/** A line can replace these variables. */
const environment: Record<string, string> = {
  AVATAR: resolve('src/default-avatars/0.png'),
  CLONE: process.cwd(),
  NODE: process.execPath,
  KEY: 'an-example-key-of-thirty-two-bytes-or-more',
  AS_NOBODY: process.geteuid?.() === 0 ? 'setpriv --reuid=65534 --clear-groups' : '',
  S3: [
    'STORAGE=s3 S3_BUCKET=originals AWS_EC2_METADATA_DISABLED=true',
    ...Object.entries(LOCAL_CREDENTIALS).map((setting) => setting.join('=')),
  ].join(' '),
};

/** Creates a result store above its limit, with leftovers of a killed process. */
const FILL_STORE = `fill_store() {
  mkdir -p store/incoming store/results/avatars/1
  echo x >store/incoming/ffffffffffffffffffffffffffffffff
  for id in $(seq 17); do
    mkdir store/results/avatars/1/$id
    truncate -s 4M store/results/avatars/1/$id/0123456789abcdef-0123456789abcdef
  done
  find store | sort >stored
}`;

const buckets = ['originals', 'uploads'] as const;
const bucket = await useLocalS3({ buckets, allowMismatchedSignatures: true });
const keepsAll = await useLocalS3({
  buckets,
  allowMismatchedSignatures: true,
  beforeRequest: ({ method }) => {
    if (method === 'DELETE') throw Object.assign(new Error('no right'), { status: 403 });
  },
});
await bucket.put('avatars/1/ab12', Buffer.from('original'));
environment.BUCKET = bucket.endpoint;
environment.KEEPS_ALL = keepsAll.endpoint;
environment.DNS = await useDnsServer({
  'example.com': ['203.0.114.7', '2a00::7'],
  'media.example.org': ['203.0.114.8'],
  'inside.example.org': ['203.0.114.9', '10.1.2.3'],
});
for (const [name, answer] of Object.entries<RespondScript>({
  REFUSES_LISTS: (_, response) => respondWithError(response, 403, 'AccessDenied'),
  LACKS_BUCKET: ({ url }, response) => {
    const code = url.searchParams.has('list-type') ? 'NoSuchBucket' : 'NoSuchKey';
    respondWithError(response, 404, code);
  },
  WRONG_CLOCK: (_, response) => {
    response.setHeader('date', new Date(Date.now() - 3_600_000).toUTCString());
    respondWithError(response, 403, 'RequestTimeTooSkewed');
  },
  SILENT: () => undefined,
})) {
  environment[name] = (await useScriptedS3(answer)).endpoint;
}

/** Runs a line in a directory with a file of each kind and an empty storage. */
async function run(line: string) {
  const { path: directory, put } = await useTemporaryDirectory();
  const { jpeg, png, svg, text, animatedGif: gif } = samples;
  const files = { jpeg, png, svg, text, gif, half: jpeg.subarray(0, 3_000), output: 'before' };
  for (const [name, bytes] of Object.entries(files)) await put(name, bytes);
  const originals = join(directory, 'originals');
  for (const name of ['bin', 'originals']) await mkdir(join(directory, name));
  await symlink(resolve('bin/darkroom.mjs'), join(directory, 'bin/darkroom'));
  const PATH = `${join(directory, 'bin')}:${process.env.PATH}`;
  const child = spawn('sh', ['-c', `${FILL_STORE}\n${line}`], {
    cwd: directory,
    env: { ...environment, PATH, STORAGE_DIR: originals },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const status = new Promise((ended) => child.once('close', ended));
  const [stdout, stderr] = await Promise.all([buffer(child.stdout), buffer(child.stderr)]);
  await chmod(originals, 0o700);
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const names = entries
    .filter((entry) => !entry.isDirectory())
    .map(({ parentPath, name }) => relative(originals, join(parentPath, name)));
  return {
    status: await status,
    stdout: stdout.toString(),
    stderr: stderr.toString(),
    stored: names.filter((name) => !name.startsWith('../')).join(' '),
    unfinished: names.filter((name) => /\.(darkroom|incoming)-/.test(name)),
    output: readFileSync(join(directory, 'output'), 'utf8'),
  };
}

const matchingAll = (pattern: string) =>
  expect.stringMatching(new RegExp(`^(?:${pattern.replaceAll('…', '[^]*')})\\n?$`));

test.each(lines.slice(1).filter(([number]) => number % atScale(36, 1) === 0))(
  'line %i: %s',
  async (_, line = '', status, stdout = '', stderr = '', stored = '') => {
    const outcome = await run(line);
    expect(outcome).toEqual({
      status: Number(status),
      stdout: matchingAll(stdout),
      stderr: matchingAll(stderr),
      stored,
      unfinished: [],
      output: 'before',
    });
    expect(outcome.stdout + outcome.stderr).not.toMatch(/hush|S3RVER/);
  },
  60_000,
);
