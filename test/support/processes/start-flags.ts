import { readFileSync } from 'node:fs';

const { scripts } = JSON.parse(readFileSync('package.json', 'utf8'));
const [, flags = ''] = /&& exec node (.+) dist\/main\.js$/.exec(scripts.start) ?? [];

/** The flags that `npm start` gives to Node, and the Dockerfile too. */
export const startFlags: readonly string[] = flags.split(' ');
