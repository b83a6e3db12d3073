import type { ComponentChildren } from 'preact';
import type { Exchange } from '../exchange.ts';
import { formatMs } from '../labels.ts';
import { exchange } from '../state.ts';

export function ResponseSheet() {
  const shown = exchange.value;
  return (
    <section aria-labelledby="response-title">
      <div class="heading">
        <h3 id="response-title">Response</h3>
      </div>
      {shown && <Cost exchange={shown} />}
      <dl class="facts" id="response">
        {shown && <Headers exchange={shown} />}
      </dl>
    </section>
  );
}

interface CostProps {
  readonly exchange: Exchange;
}

/** Stages of the request as fractions of the time measured in the browser. */
function Cost({ exchange: { timings, totalMs } }: CostProps) {
  const serviceMs = timings.reduce((sum, { durationMs }) => sum + durationMs, 0);
  const network = { name: 'network', durationMs: Math.max(0, totalMs - serviceMs) };
  const parts = [...timings, network].map(({ name, durationMs }) => ({
    name,
    fraction: durationMs / Math.max(1, totalMs),
    title: `${name} ${formatMs(durationMs)}`,
  }));
  const label = `Time: ${parts.map(({ title }) => title).join(', ')}`;
  return (
    <div class="cost" id="cost" role="img" aria-label={label}>
      {parts.map(({ name, fraction, title }) => (
        <span key={name} class={`part ${name}`} style={{ '--part': fraction }} title={title} />
      ))}
    </div>
  );
}

function Headers({ exchange: { mimeType, cacheStatus, timings, totalMs } }: CostProps) {
  return (
    <>
      <Property name="Content-Type">{mimeType}</Property>
      <Property name="Cache-Status">
        <code>{cacheStatus ?? '–'}</code>
      </Property>
      <Property name="Server-Timing" note={`${formatMs(totalMs)} round trip`}>
        <span class="timings-list">
          {timings.map(({ name, durationMs }) => (
            <span key={name} class={`timing ${name}`}>
              {`${name} ${formatMs(durationMs)}`}
            </span>
          ))}
        </span>
      </Property>
    </>
  );
}

interface PropertyProps {
  readonly name: string;
  readonly note?: string;
  readonly title?: string;
  readonly children: ComponentChildren;
}

export function Property({ name, note = '', title, children }: PropertyProps) {
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
