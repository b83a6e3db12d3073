import type { ComponentChildren } from 'preact';
import type { Exchange } from '../exchange.ts';
import { formatBytes, formatExactBytes, formatMs } from '../labels.ts';
import { describeShare, exchange, isBlank, isWaiting } from '../state.ts';
import { askAgain } from '../workbench.ts';

/** The response, its cost, and a button that repeats the request. */
export function ResponseSheet() {
  const shown = exchange.value;
  return (
    <section aria-labelledby="response-title">
      <div class="heading">
        <h3 id="response-title">Response</h3>
        <p class="soft">{shown && describeSource(shown)}</p>
        <button type="button" disabled={isBlank.value || isWaiting.value} onClick={askAgain}>
          Ask again
        </button>
      </div>
      {shown && <Cost exchange={shown} />}
      <dl class="response" id="response">
        {shown && <Facts exchange={shown} />}
      </dl>
    </section>
  );
}

/** Describes where the response came from, by `Cache-Status` (RFC 9211) and the stages in `Server-Timing`. */
function describeSource({ cacheStatus = '', timings, body }: Exchange): string {
  if (cacheStatus === '') return '';
  const parts = cacheStatus.split(';').map((part) => part.trim());
  const hasEntered = (stage: string) => timings.some(({ name }) => name === stage);
  if (parts.includes('hit'))
    return body.kind === 'error'
      ? 'A hit: the error was remembered.'
      : 'A hit: the response was in a cache.';
  if (hasEntered('render')) {
    const joined = parts.includes('collapsed') ? ', together with another request' : '';
    return `Rendered just now${joined}.`;
  }
  if (hasEntered('origin')) return 'Sent from the original, without a render.';
  return 'No render was needed.';
}

/** The stages of the request, as shares of the time measured here. */
function Cost({ exchange: { timings, totalMs } }: { readonly exchange: Exchange }) {
  const serviceMs = timings.reduce((sum, { durationMs }) => sum + durationMs, 0);
  const way = { name: 'way', durationMs: Math.max(0, totalMs - serviceMs) };
  const parts = [...timings, way].map(({ name, durationMs }) => ({
    name,
    share: durationMs / Math.max(1, totalMs),
    title: `${name === 'way' ? 'network' : name} ${formatMs(durationMs)}`,
  }));
  const label = `Time: ${parts.map(({ title }) => title).join(', ')}`;
  return (
    <div class="cost" id="cost" role="img" aria-label={label}>
      {parts.map(({ name, share, title }) => (
        <span key={name} class={`part ${name}`} style={{ '--part': share }} title={title} />
      ))}
    </div>
  );
}

function Facts({ exchange }: { readonly exchange: Exchange }) {
  const { status, mimeType, sizeBytes, cacheStatus, timings, totalMs, body } = exchange;
  const isError = body.kind === 'error';
  const exactBytes = formatExactBytes(sizeBytes);
  const size = body.kind === 'picture' && body.width > 0 ? `${body.width} × ${body.height}` : '–';
  return (
    <>
      <Fact name="Status" note={isError ? body.code : 'OK'}>
        <span class={isError ? 'bad' : 'good'}>{status}</span>
      </Fact>
      <Fact name="Type">{mimeType}</Fact>
      <Fact name="Dimensions" note={size === '–' ? '' : 'pixels'}>
        {size}
      </Fact>
      {isError ? (
        <Fact name="Bytes" note="of an error">
          {formatBytes(sizeBytes)}
        </Fact>
      ) : (
        <Fact name="Bytes" note={describeShare(sizeBytes) ?? exactBytes} title={exactBytes}>
          {formatBytes(sizeBytes)}
        </Fact>
      )}
      <Fact name="Cache-Status">
        <code>{cacheStatus ?? '–'}</code>
      </Fact>
      <Fact name="Server-Timing" note={`${formatMs(totalMs)} round trip`}>
        <span class="timings-list">
          {timings.map(({ name, durationMs }) => (
            <span key={name} class={`timing ${name}`}>
              {`${name} ${formatMs(durationMs)}`}
            </span>
          ))}
        </span>
      </Fact>
    </>
  );
}

interface FactProps {
  readonly name: string;
  readonly note?: string;
  readonly title?: string;
  readonly children: ComponentChildren;
}

function Fact({ name, note = '', title, children }: FactProps) {
  return (
    <div class={name.toLowerCase()} title={title}>
      <dt>{name}</dt>
      <dd>
        <span class="value">{children}</span>
        {note !== '' && <span class="note">{note}</span>}
      </dd>
    </div>
  );
}
