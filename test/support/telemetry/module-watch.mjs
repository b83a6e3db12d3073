/**
 * To be given to Node with `--import`: prints on the standard error every package that a program imports, by its
 * name, and every file of the build, by its path. Hooks run in a thread of their own, which loads this file once more.
 */
import { writeSync } from 'node:fs';
import { register } from 'node:module';
import { isMainThread } from 'node:worker_threads';

const STANDARD_ERROR = 2;

if (isMainThread) register(import.meta.url);

export async function resolve(specifier, context, next) {
  const resolved = await next(specifier, context);
  const [, name] =
    /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(resolved.url) ??
    /\/(dist\/.+)/.exec(resolved.url) ??
    [];
  if (name !== undefined) writeSync(STANDARD_ERROR, `imported ${name}\n`);
  return resolved;
}
