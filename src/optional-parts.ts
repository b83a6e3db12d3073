/**
 * Parts of the service that are there where a setting asks for them. The admin listener, the way to other sites and
 * tracing are loaded only then.
 */

import type { FastifyInstance } from 'fastify';
import type { Config } from './config/config.ts';
import { loadExplorerFiles } from './explorer/explorer-files.ts';
import { ExplorerSigner } from './explorer/explorer-signer.ts';
import { OriginalDescriber } from './explorer/original-describer.ts';
import type { AdminServerOptions } from './http/admin/admin-server.ts';
import { ExplorerHandler, type ExplorerParts } from './http/explorer/explorer-handler.ts';
import type { AttachmentGuardOptions } from './http/media/attachment-guard.ts';
import { RelayHandler } from './http/relay/relay-handler.ts';
import type { Meter } from './pipeline/meter.ts';
import type { OriginalWriter } from './pipeline/originals/original-writer.ts';
import type { Originals } from './pipeline/originals/originals.ts';
import type { Clock, Log } from './pipeline/ports.ts';
import type { Purger } from './pipeline/results/purger.ts';
import { type UploadLimits, UploadService } from './pipeline/uploads/upload-service.ts';
import type { StorageMarker } from './storage/filesystem/root-folder.ts';
import { openListing, openOriginalWriter } from './storage/open-storage.ts';
import type { SiteDoubles } from './storage/remote/open-sites.ts';
import type { Tracing } from './telemetry/tracing.ts';

/** Parts of the explorer besides its settings. */
interface ExplorerPageParts extends Pick<ExplorerParts, 'defaultAvatars' | 'clock'> {
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
  readonly originals: Originals;
}

/** Parts of the relay besides its settings. */
interface RelayParts {
  /** In the place of the storage's own; for tests. */
  readonly writer: OriginalWriter | undefined;
  readonly limits: Partial<UploadLimits> | undefined;
  readonly marker: StorageMarker | undefined;
  readonly purger: Purger;
  readonly meter: Meter;
  readonly clock: Clock;
  /** Milliseconds since 1970. */
  readonly wallClock: () => number;
  readonly log: Log;
}

/** Opens the explorer, if it is switched on. */
export async function openExplorerPage(
  config: Config,
  { defaultAvatars, clock, wallClock, originals }: ExplorerPageParts,
): Promise<ExplorerHandler | undefined> {
  if (!config.explorer.isOn) return undefined;
  return new ExplorerHandler({
    files: await loadExplorerFiles(),
    listing: await openListing(config),
    defaultAvatars,
    clock,
    describer: new OriginalDescriber(originals),
    signer: createSigner(config, wallClock),
  });
}

/** Opens what takes uploads, and what responds to them, if there are keys that permit them. */
export async function openRelay(
  config: Config,
  { writer, limits, marker, purger, meter, clock, wallClock, log }: RelayParts,
) {
  const { relay, storage } = config;
  if (relay === undefined) return undefined;
  const uploads = new UploadService({
    writer: writer ?? (await openOriginalWriter(config, marker, relay)),
    purger,
    limits: { ...relay.limits, ...limits },
    clock,
    meter,
    log,
  });
  // A folder has no name.
  const bucket = storage.kind === 's3' ? storage.bucket : undefined;
  const handler = new RelayHandler({ keys: relay.keys, bucket, uploads, wallClock });
  return { uploads, handler };
}

/** Returns the options of the attachment guard; `undefined` where URLs are not judged. */
export function guardOf(
  { attachments: { mode, signing } }: Config,
  wallClock: () => number,
  meter: Meter,
): AttachmentGuardOptions | undefined {
  return mode === 'off' || signing === undefined ? undefined : { mode, signing, wallClock, meter };
}

/**
 * Creates what signs for all who can look at the explorer, if there are keys. Where one is set, the explorer is on only if
 * `EXPLORER=on` was said (`config.ts`): a page that signs for all who open it is a key.
 */
function createSigner(
  { attachments, external }: Config,
  wallClock: () => number,
): ExplorerSigner | undefined {
  const signing = {
    attachments: attachments.mode === 'off' ? undefined : attachments.signing,
    external: external?.keys,
  };
  const hasKeys = signing.attachments !== undefined || signing.external !== undefined;
  return hasKeys ? new ExplorerSigner({ ...signing, nowMs: wallClock }) : undefined;
}

/** Opens the admin listener, if it has a port. */
export async function openAdmin(
  { admin, release }: Config,
  parts: Omit<AdminServerOptions, 'token' | 'release'>,
): Promise<FastifyInstance | undefined> {
  if (admin === undefined) return undefined;
  const { createAdminServer } = await import('./http/admin/admin-server.ts');
  return createAdminServer({ ...parts, token: admin.token, release });
}

/** Opens the way to other sites, if external media are switched on; where not, nothing of it is loaded. */
export async function openExternal(config: Config, meter: Meter, doubles?: SiteDoubles) {
  const { external, release, originReads } = config;
  if (external === undefined) return undefined;
  const { openSites } = await import('./storage/remote/open-sites.ts');
  const settings = { ...external, version: release.version, maxWaitMs: originReads.maxWaitMs };
  return openSites(settings, (outcome) => meter.count('externalFetches', outcome), doubles);
}

/** Starts tracing, if it is wanted; where not, nothing of OpenTelemetry is loaded. */
export async function openTracing(
  { tracing, http, release }: Config,
  log: Log,
): Promise<Tracing | undefined> {
  if (tracing === undefined) return undefined;
  const { startTracing } = await import('./telemetry/tracing.ts');
  const scheme = http.tls === undefined ? 'http' : 'https';
  return startTracing({ ...tracing, scheme, version: release.version, log });
}
