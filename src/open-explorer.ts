import type { Config } from './config/config.ts';
import { originFolders } from './contract/resources.ts';
import type { DefaultAvatar } from './default-avatars/default-avatars.ts';
import { loadExplorerFiles } from './explorer/explorer-files.ts';
import { ExplorerHandler } from './http/explorer/explorer-handler.ts';
import { OriginalsCatalogue } from './pipeline/originals/catalogue.ts';
import type { Clock, OriginListing } from './pipeline/ports.ts';
import { createFilesystemListing } from './storage/filesystem/filesystem-listing.ts';

/**
 * Puts the explorer together.
 *
 * @throws Error if its page is not there: the build is incomplete
 */
export async function openExplorer(
  { storage }: Config,
  defaultAvatars: readonly DefaultAvatar[],
  clock: Clock,
): Promise<ExplorerHandler> {
  const files = await loadExplorerFiles();
  const catalogue = new OriginalsCatalogue(await openListing(storage));
  return new ExplorerHandler({ files, catalogue, defaultAvatars, clock });
}

async function openListing(storage: Config['storage']): Promise<OriginListing> {
  if (storage.kind === 'filesystem') return createFilesystemListing(storage.folder);
  // Only where it is needed, like the origin's. Its folders are listed all at once.
  const { createS3Listing } = await import('./storage/s3/s3-listing.ts');
  return createS3Listing({ ...storage, maxConnections: originFolders.length });
}
