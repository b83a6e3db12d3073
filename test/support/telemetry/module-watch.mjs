/**
 * For `node --import`: prints each imported package and file of the build to the standard error. Hooks run in their own
 * thread, which loads this file again.
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
