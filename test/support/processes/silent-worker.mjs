/** A worker that never becomes ready. It ends with the process that has started it. */
import { Socket } from 'node:net';

new Socket({ fd: 3 }).on('close', () => process.exit(0)).resume();
