import type { Config } from '../../config/config.ts';
import { timeoutError, withDeadline } from '../../pipeline/abort.ts';
import { type CdnApi, CdnFailure } from '../../pipeline/cdn/cdn-api.ts';
import { protocols } from './protocols.ts';

const TIMEOUT_MS = 10_000;

const MAX_REASON_LENGTH = 200;

/** Opens the API of a CDN; the first purge sends the first request. */
export async function openCdnApi(cdn: NonNullable<Config['cdn']>): Promise<CdnApi> {
  const { name, token } = cdn;
  const protocol =
    name === 'cloudfront' ? (await import('./cloudfront.ts')).createCloudfront() : protocols[name];
  const base = cdn.api ?? protocol.base;
  const send = async (tags: readonly string[], reference: string, signal: AbortSignal) => {
    const request = await protocol.request({ ...cdn, base }, tags, reference);
    const { path, headers, body } = request;
    // A redirect would send the token to another server.
    const init = { method: 'POST', headers, body, signal, redirect: 'error' } as const;
    const response = await fetch(base + path, init);
    const retryAfterMs = parseRetryAfter(response.headers.get('retry-after'));
    return { status: response.status, retryAfterMs, body: await response.text() };
  };
  return {
    name,
    purge: async (tags, reference, signal) => {
      const onTimeout = () => timeoutError(`no response within ${TIMEOUT_MS} ms`);
      const response = await withDeadline(TIMEOUT_MS, signal, onTimeout, (within) =>
        send(tags, reference, within),
      ).catch((error: unknown) => {
        signal.throwIfAborted();
        throw failureOf(error);
      });
      const reason = protocol.findFailure(response);
      if (reason === undefined) return;
      const isLimited = response.status === 429 || protocol.isLimited?.(response) === true;
      throw new CdnFailure(
        redact(reason, token),
        isLimited ? 'limited' : 'failed',
        response.retryAfterMs,
      );
    },
  };
}

function failureOf(error: unknown): CdnFailure {
  if (!(error instanceof Error)) return new CdnFailure(String(error), 'failed');
  if (error.name === 'TimeoutError') return new CdnFailure(error.message, 'timeout');
  // The cause of `fetch failed` has the reason.
  const cause = error.cause instanceof Error ? error.cause : error;
  const { code } = cause as { readonly code?: string };
  return new CdnFailure(code ?? cause.message, 'failed');
}

/** Shortens a reason to one line, and removes our token, which the API may quote. */
function redact(reason: string, token: string | undefined): string {
  const text = token === undefined ? reason : reason.replaceAll(token, '***');
  return text.replaceAll(/\s+/g, ' ').slice(0, MAX_REASON_LENGTH);
}

/** Parses `Retry-After`, seconds or a date (RFC 9110 §10.2.3), into milliseconds. */
function parseRetryAfter(text: string | null): number | undefined {
  if (text === null) return undefined;
  const waitMs = /^\d+(\.\d+)?$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isFinite(waitMs) ? Math.max(0, waitMs) : undefined;
}
