import { contractResources } from '../../contract/resources.ts';
import type { Backend } from '../backend.ts';
import { createS3Listing } from './listing.ts';
import { createS3Origin } from './origin.ts';
import { S3ResultStore } from './s3-result-store.ts';
import { S3Objects } from './shared-objects.ts';
import { S3OriginalWriter } from './writer.ts';

const LISTING_CONNECTIONS = contractResources.keyRoots.length;

export const s3: Backend<'s3'> = {
  openOriginals: async (place, { bodyTimeoutMs }) => ({
    origin: createS3Origin(place, bodyTimeoutMs),
    openListing: () => createS3Listing({ ...place, maxConnections: LISTING_CONNECTIONS }),
    openWriter: (maxConnections = place.maxConnections) =>
      new S3OriginalWriter({ ...place, maxConnections }),
    remove: (key, timeoutMs) => new S3Objects({ ...place, key, timeoutMs }).remove(''),
  }),
  openResults: async (place) => new S3ResultStore(place),
  openShared: async (place) => new S3Objects(place),
};
