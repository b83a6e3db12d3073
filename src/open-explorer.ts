import type { Config } from './config/config.ts';
import type { DefaultAvatar } from './default-avatars/default-avatars.ts';
import { loadExplorerFiles } from './explorer/explorer-files.ts';
import { ExplorerHandler } from './http/explorer/explorer-handler.ts';
import { OriginalsCatalogue } from './pipeline/originals/catalogue.ts';
import type { Clock } from './pipeline/ports.ts';
import { openListing } from './storage/open-storage.ts';

/**
 * Puts the explorer together.
 *
 * @throws Error if its page is not there: the build is incomplete
 */
export async function openExplorer(
  config: Config,
  defaultAvatars: readonly DefaultAvatar[],
  clock: Clock,
): Promise<ExplorerHandler> {
  const files = await loadExplorerFiles();
  const catalogue = new OriginalsCatalogue(await openListing(config));
  return new ExplorerHandler({ files, catalogue, defaultAvatars, clock });
}
