import { createServer } from 'node:http';
import { createIPX, createIPXNodeServer, ipxFSStorage } from 'ipx';
import { announce } from './announce.ts';

/* IPX with its own server and its defaults. `/{modifiers}/{path of the original}`. */
const [dir = '.'] = process.argv.slice(2);
announce(createServer(createIPXNodeServer(createIPX({ storage: ipxFSStorage({ dir }) }))));
