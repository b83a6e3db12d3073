import { readFileSync } from 'node:fs';

const { scripts } = JSON.parse(readFileSync('package.json', 'utf8'));
const [, flags = ''] = /&& exec node (.+) dist\/main\.js$/.exec(scripts.start) ?? [];

/** Node's flags in `npm start` and in the Dockerfile. */
export const startFlags: readonly string[] = flags.split(' ');
