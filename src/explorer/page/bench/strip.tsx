import type { Exchange } from '../exchange.ts';
import { formatBytes, formatExactBytes, formatFraction, formatMs } from '../labels.ts';
import { describeFraction, exchange, shownWidthPx } from '../state.ts';
import { Property } from './response.tsx';

export function Strip() {
  const shown = exchange.value;
  return (
    <dl class="facts" id="strip">
      {shown && <Numbers exchange={shown} />}
    </dl>
  );
}

function Numbers({ exchange: shown }: { readonly exchange: Exchange }) {
  const { status, sizeBytes, totalMs, body } = shown;
  const isError = body.kind === 'error';
  const exactBytes = formatExactBytes(sizeBytes);
  const [cache, source] = describeCache(shown);
  const [width, height] = body.kind === 'picture' ? [body.width, body.height] : [0, 0];
  const shownPx = shownWidthPx.value ?? 0;
  const isReduced = shownPx > 0 && shownPx < width;
  return (
    <>
      <Property name="Status" note={isError ? '' : 'OK'}>
        <span class={isError ? 'bad' : 'good'}>{status}</span>
      </Property>
      <Property
        name="Bytes"
        note={isError ? 'of the error' : (describeFraction(sizeBytes) ?? exactBytes)}
        title={exactBytes}
      >
        <span class="weight">{formatBytes(sizeBytes)}</span>
      </Property>
      {width > 0 && (
        <Property
          name="Dimensions"
          note={isReduced ? `shown at ${formatFraction(shownPx, width)}` : 'pixels'}
        >
          {`${width} × ${height}`}
        </Property>
      )}
      <Property name="Cache" note={source}>
        {cache}
      </Property>
      <Property name="Time" note="round trip">
        {formatMs(totalMs)}
      </Property>
    </>
  );
}

/** Describes the source of a response by `Cache-Status` (RFC 9211) and the stages in `Server-Timing`. */
function describeCache({
  cacheStatus = '',
  timings,
  body,
}: Exchange): readonly [cache: string, source: string] {
  if (cacheStatus === '') return ['–', ''];
  const parts = cacheStatus.split(';').map((part) => part.trim());
  const hasEntered = (stage: string) => timings.some(({ name }) => name === stage);
  if (parts.includes('hit')) return ['hit', body.kind === 'error' ? 'cached error' : ''];
  if (hasEntered('render')) {
    return ['miss', parts.includes('collapsed') ? 'rendered with others' : 'rendered now'];
  }
  return ['miss', hasEntered('origin') ? 'sent unchanged' : 'not rendered'];
}
