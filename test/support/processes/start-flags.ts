import { readFileSync } from 'node:fs';

/** The flags that `npm start` gives to Node, and the Dockerfile too. */
export const startFlags: readonly string[] = readStartFlags();

function readStartFlags(): string[] {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as {
    readonly scripts: { readonly start: string };
  };
  const flags = /&& node (.+) dist\/main\.js$/.exec(scripts.start)?.[1];
  if (flags === undefined) throw new Error(`npm start is something else: ${scripts.start}`);
  return flags.split(' ');
}
