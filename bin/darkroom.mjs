#!/usr/bin/env node
// Entry point of `npx darkroom`: starts the compiled command line.
import { existsSync } from 'node:fs';

const program = new URL('../dist/cli/main.js', import.meta.url);

if (existsSync(program)) {
  await import(program.href);
} else {
  process.stderr.write(
    'Darkroom is not built yet. In its directory, run: npm ci && npm run build\n',
  );
  process.exitCode = 1;
}
