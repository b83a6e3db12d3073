import { createServer } from 'node:http';
import { createIPX, createIPXNodeServer, type IPXStorage, ipxFSStorage, ipxHttpStorage } from 'ipx';
import { serve } from './serve.ts';

/*
 * IPX with its own server and its defaults. `/{modifiers}/{path of the original}`, from a folder or from a URL
 * that paths are put behind. `/-/renders` tells how many originals it has read: one for each render.
 */
const [place = '.'] = process.argv.slice(2);
let renders = 0;

function counting(storage: IPXStorage): IPXStorage {
  return {
    ...storage,
    getData: (...call) => {
      renders += 1;
      return storage.getData(...call);
    },
  };
}

const ipx = createIPX(
  place.startsWith('http://')
    ? { storage: counting(ipxHttpStorage({ allowAllDomains: true })), alias: { '/': place } }
    : { storage: counting(ipxFSStorage({ dir: place })) },
);
const answer = createIPXNodeServer(ipx);
serve(
  createServer((request, response) => {
    if (request.url === '/-/renders') response.end(String(renders));
    else answer(request, response);
  }),
);
