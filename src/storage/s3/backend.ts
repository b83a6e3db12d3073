import { contractResources } from '../../contract/resources.ts';
import type { Backend } from '../backend.ts';
import { createS3Listing } from './listing.ts';
import { createS3Origin } from './origin.ts';
import { S3ResultStore } from './s3-result-store.ts';
import { S3Objects } from './shared-objects.ts';
import { S3OriginalWriter } from './writer.ts';

const LISTING_CONNECTIONS = contractResources.keyRoots.length;

export const s3: Backend<'s3'> = {
  openOriginals: async (location, { bodyTimeoutMs }) => ({
    origin: createS3Origin(location, bodyTimeoutMs),
    openListing: () => createS3Listing({ ...location, maxConnections: LISTING_CONNECTIONS }),
    openWriter: (maxConnections = location.maxConnections) =>
      new S3OriginalWriter({ ...location, maxConnections }),
    remove: (key, timeoutMs) => new S3Objects({ ...location, key, timeoutMs }).remove(''),
  }),
  openResults: async (location) => new S3ResultStore(location),
  openShared: async (location) => new S3Objects(location),
};
