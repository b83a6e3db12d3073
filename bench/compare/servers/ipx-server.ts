import { createServer } from 'node:http';
import { createIPX, createIPXNodeServer, ipxFSStorage } from 'ipx';
import { serve } from './serve.ts';

/* IPX with its own server and its defaults, on a folder: `/{modifiers}/{path of the original}`. */
const [dir = '.'] = process.argv.slice(2);
serve(createServer(createIPXNodeServer(createIPX({ storage: ipxFSStorage({ dir }) }))));
