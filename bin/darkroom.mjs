#!/usr/bin/env node
// What `npx darkroom` starts: the compiled command line, or what to do where there is none.
import { existsSync } from 'node:fs';

const program = new URL('../dist/cli/main.js', import.meta.url);

if (existsSync(program)) {
  await import(program.href);
} else {
  process.stderr.write('Darkroom is not built yet. In its folder, run: npm ci && npm run build\n');
  process.exitCode = 1;
}
