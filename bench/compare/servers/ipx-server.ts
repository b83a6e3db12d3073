import { createServer } from 'node:http';
import { createIPX, createIPXNodeServer, ipxFSStorage, ipxHttpStorage } from 'ipx';
import { serve } from './serve.ts';

/*
 * IPX with its own server and its defaults. `/{modifiers}/{path of the original}`, from a folder or from a URL
 * that paths are put behind.
 */
const [place = '.'] = process.argv.slice(2);
const ipx = createIPX(
  place.startsWith('http://')
    ? { storage: ipxHttpStorage({ allowAllDomains: true }), alias: { '/': place } }
    : { storage: ipxFSStorage({ dir: place }) },
);
serve(createServer(createIPXNodeServer(ipx)));
