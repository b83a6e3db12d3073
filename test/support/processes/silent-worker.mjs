/** A worker that never becomes ready. It exits with its parent. */
import { Socket } from 'node:net';

new Socket({ fd: 3 }).on('close', () => process.exit(0)).resume();
