import { signal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { Exchange, ResponseBody } from '../exchange.ts';
import { fileNameOf } from '../export.ts';
import { formatBytes } from '../labels.ts';
import { placeholdersOf } from '../media-choice.ts';
import { choice, exchange, isBlank, isWaiting, outcome, shownWidthPx, target } from '../state.ts';
import { fetchAgain } from '../workbench.ts';
import { Strip } from './strip.tsx';

/** Corner radius by mask, as a fraction of the shorter edge. */
const masks = { none: 0, rounded: 0.25, circle: 0.5 } as const;

const mask = signal<keyof typeof masks>('none');

/** Kinds that clients crop to a square with round corners. */
const MASKED_KINDS = /(?:avatar|icon)$/;

/** Picture or error, with the numbers of the response. */
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
      <figcaption>
        <Strip />
      </figcaption>
    </figure>
  );
}

export function StageActions() {
  const chosen = choice.value;
  if (chosen === undefined) return null;
  const body = exchange.value?.body;
  const hasFile = target.value !== undefined && body !== undefined && body.kind !== 'error';
  return (
    <div class="actions">
      {MASKED_KINDS.test(chosen.resource.name) && (
        <fieldset class="segments" aria-label="Mask">
          {(Object.keys(masks) as (keyof typeof masks)[]).map((each) => (
            <label key={each}>
              <input
                type="radio"
                name="mask"
                value={each}
                checked={each === mask.value}
                onChange={() => {
                  mask.value = each;
                }}
              />
              <span>
                {each === 'none' ? 'No mask' : `${each[0]?.toUpperCase()}${each.slice(1)}`}
              </span>
            </label>
          ))}
        </fieldset>
      )}
      <div class="buttons">
        <FileLink href={hasFile ? target.value : undefined} target="_blank" rel="noopener">
          Open
        </FileLink>
        <FileLink href={hasFile ? target.value : undefined} download={fileNameOf(chosen)}>
          Download
        </FileLink>
        <button type="button" disabled={isBlank.value || isWaiting.value} onClick={fetchAgain}>
          Fetch again
        </button>
      </div>
    </div>
  );
}

interface FileLinkProps {
  /** Omit to disable the link. */
  readonly href: string | undefined;
  readonly target?: string;
  readonly rel?: string;
  readonly download?: string;
  readonly children: string;
}

function FileLink({ href, children, ...more }: FileLinkProps) {
  if (href !== undefined) {
    return (
      <a class="button" href={href} {...more}>
        {children}
      </a>
    );
  }
  return (
    // biome-ignore lint/a11y/useSemanticElements lint/a11y/useFocusableInteractive: a disabled link has no href
    <span class="button" role="link" aria-disabled="true">
      {children}
    </span>
  );
}

function Picture({ url, exchange }: { readonly url: string; readonly exchange: Exchange }) {
  const picture = useRef<HTMLImageElement>(null);
  const { body, sizeBytes } = exchange;
  const [width, height] = body.kind === 'picture' ? [body.width, body.height] : [0, 0];
  useLayoutEffect(() => {
    shownWidthPx.value = picture.current?.clientWidth;
  }, [width]);
  const isMasked = MASKED_KINDS.test(choice.value?.resource.name ?? '');
  const clipPath = isMasked && mask.value !== 'none' ? clip(width, height) : undefined;
  return (
    <>
      <img
        ref={picture}
        src={url}
        alt={`${width} × ${height} pixels`}
        decoding="sync"
        width={width || undefined}
        height={height || undefined}
        style={{ clipPath }}
      />
      <span class="unseen">{formatBytes(sizeBytes)}</span>
    </>
  );
}

/** Returns a CSS clip path for the central square with the mask's corners. */
function clip(width: number, height: number): string {
  const edge = Math.min(width, height);
  const percent = (part: number, of: number): string => `${(100 * part) / Math.max(1, of)}%`;
  const inset = [percent((height - edge) / 2, height), percent((width - edge) / 2, width)];
  const radius = masks[mask.value] * edge;
  return `inset(${inset.join(' ')} round ${percent(radius, width)} / ${percent(radius, height)})`;
}

function Nothing() {
  const chosen = choice.value;
  if (chosen === undefined || !isBlank.value) return null;
  const names = placeholdersOf(chosen.resource);
  return (
    <div class="fault">
      <p class="code">No {chosen.resource.name} found</p>
      <p>
        {'Enter '}
        {new Intl.ListFormat('en-GB')
          .formatToParts(names)
          .map(({ type, value }) => (type === 'element' ? <code>{value}</code> : value))}
        {', or paste a URL above.'}
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

function File({ exchange: { target, mimeType } }: { readonly exchange: Exchange }) {
  const isVideo = mimeType.startsWith('video/');
  return (
    <div class="file">
      {isVideo && (
        // biome-ignore lint/a11y/useMediaCaption: uploaded videos have no captions
        <video
          key={target}
          controls
          preload="none"
          src={target}
          poster={`${target}${target.includes('?') ? '&' : '?'}format=webp`}
        />
      )}
      <p class="code">{mimeType}</p>
      {!isVideo && <p>No preview for this file.</p>}
    </div>
  );
}
