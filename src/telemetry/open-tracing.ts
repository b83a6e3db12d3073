import { readFile } from 'node:fs/promises';
import type { Config } from '../config/config.ts';
import type { Log } from '../pipeline/ports.ts';
import type { Tracer } from '../pipeline/tracer.ts';

/** Seen from the compiled file, and from its source. */
const PACKAGE_FILE = new URL('../../package.json', import.meta.url);

/** Opens the way to a collector of traces, if there is to be one; where not, nothing of OpenTelemetry is loaded. */
export async function openTracer(
  { tracing, http }: Pick<Config, 'tracing' | 'http'>,
  log: Log,
): Promise<Tracer | undefined> {
  if (tracing === undefined) return undefined;
  const { createOpenTelemetryTracer } = await import('./open-telemetry-tracer.ts');
  const { url, protocol, sampler } = tracing;
  log.info({ url, protocol, sampler }, `Traces go to ${url}`);
  const scheme = http.tls === undefined ? 'http' : 'https';
  return createOpenTelemetryTracer({ ...tracing, scheme, version: await readVersion(), log });
}

async function readVersion(): Promise<string> {
  const text = await readFile(PACKAGE_FILE, 'utf8');
  return /"version": "([^"]+)"/.exec(text)?.[1] ?? 'unknown';
}
