import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Exchange, ResponseBody } from '../exchange.ts';
import { formatBytes, formatExactBytes, formatShare } from '../labels.ts';
import { placeholdersOf } from '../media-choice.ts';
import { choice, describeShare, exchange, isBlank, isWaiting, outcome } from '../state.ts';

/** The picture, or the error instead, and its size in bytes. */
export function Stage() {
  const shown = outcome.value;
  const received = exchange.value;
  return (
    <figure class="stage" id="stage" aria-busy={isWaiting.value ? 'true' : undefined}>
      <div class="seen" aria-live="polite">
        {shown.kind === 'failure' && (
          <div class="fault">
            <p class="code">No response</p>
            <p>{shown.message}</p>
          </div>
        )}
        {shown.kind === 'nothing' && <Nothing />}
        {shown.kind === 'exchange' && shown.pictureUrl !== undefined && (
          <Picture key={shown.pictureUrl} url={shown.pictureUrl} exchange={shown.exchange} />
        )}
        {received?.body.kind === 'error' && (
          <Refusal status={received.status} body={received.body} />
        )}
        {received?.body.kind === 'file' && <File exchange={received} />}
      </div>
    </figure>
  );
}

function Picture({ url, exchange }: { readonly url: string; readonly exchange: Exchange }) {
  const picture = useRef<HTMLImageElement>(null);
  const [scale, setScale] = useState('');
  const { body, sizeBytes } = exchange;
  const [width, height] = body.kind === 'picture' ? [body.width, body.height] : [0, 0];
  // Unless shown pixel for pixel, a picture's sharpness cannot be judged.
  useLayoutEffect(() => {
    const seenPx = picture.current?.clientWidth ?? 0;
    const isSmaller = seenPx > 0 && seenPx < width;
    setScale(isSmaller ? `, seen at ${formatShare(seenPx, width)}` : '');
  }, [width]);
  const share = describeShare(sizeBytes);
  return (
    <>
      <img
        ref={picture}
        src={url}
        alt={`${width} × ${height} pixels`}
        decoding="sync"
        width={width || undefined}
        height={height || undefined}
      />
      <figcaption>
        <span>
          <strong class="weight" title={formatExactBytes(sizeBytes)}>
            {formatBytes(sizeBytes)}
          </strong>
          {share && `, ${share}`}
        </span>
        <span class="seen-size">
          {width} × {height} px{scale}
        </span>
      </figcaption>
    </>
  );
}

function Nothing() {
  const chosen = choice.value;
  if (chosen === undefined || !isBlank.value) return null;
  const names = placeholdersOf(chosen.resource);
  return (
    <div class="fault">
      <p class="code">No {chosen.resource.name} is in the list</p>
      <p>
        {'Put '}
        {new Intl.ListFormat('en-GB')
          .formatToParts(names)
          .map(({ type, value }) => (type === 'element' ? <code>{value}</code> : value))}
        {' of one, or a URL in the line above.'}
      </p>
    </div>
  );
}

interface RefusalProps {
  readonly status: number;
  readonly body: Extract<ResponseBody, { kind: 'error' }>;
}

function Refusal({ status, body: { code, message, errors } }: RefusalProps) {
  return (
    <div class="fault">
      <p class="status">{status}</p>
      <p class="code">{code}</p>
      <p>{message}</p>
      {errors.length > 0 && (
        <ul>
          {errors.map((fault) => (
            <li key={fault.path}>
              <code>{fault.path}</code> {fault.message}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function File({ exchange: { target, mimeType, sizeBytes } }: { readonly exchange: Exchange }) {
  const isVideo = mimeType.startsWith('video/');
  return (
    <div class="file">
      {isVideo && (
        // biome-ignore lint/a11y/useMediaCaption: the originals of strangers have none
        <video
          key={target}
          controls
          preload="none"
          src={target}
          poster={`${target}${target.includes('?') ? '&' : '?'}format=webp`}
        />
      )}
      <p class="code">{mimeType}</p>
      <p>
        {formatExactBytes(sizeBytes)}
        {isVideo ? '' : ', not shown here'}.
      </p>
      <a href={target} target="_blank" rel="noopener">
        Open it
      </a>
    </div>
  );
}
