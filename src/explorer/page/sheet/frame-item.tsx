import { useComputed } from '@preact/signals';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { formatBytes } from '../labels.ts';
import { formatTarget } from '../media-choice.ts';
import { type Frame, facts, isPicture } from '../originals.ts';
import { currentFrame } from '../state.ts';
import { nameOf } from '../take-away.ts';
import { chooseFirst, endingOfFile, formatThumbnail, isCutOut } from '../thumbnail.ts';
import { focusedId, stopId } from './sheet-state.ts';

/** An original: a link to the workbench. Animations are marked, and play while pointed at. */
export function FrameItem({ frame }: { readonly frame: Frame }) {
  const { id, resource, label } = frame;
  const isStop = useComputed(() => stopId.value === id).value;
  const isCurrent = useComputed(() => currentFrame.value?.id === id).value;
  const link = useRef<HTMLAnchorElement>(null);
  const [isPointedAt, setIsPointedAt] = useState(false);
  const [isBroken, setIsBroken] = useState(false);
  useLayoutEffect(() => {
    if (isCurrent) link.current?.scrollIntoView({ block: 'nearest' });
  }, [isCurrent]);
  const isMoving = facts.value.get(id)?.isMoving === true;
  const name = nameOf(frame);
  const size = formatBytes(frame.sizeBytes);
  const shows = (isShown: boolean) => () => setIsPointedAt(isShown);
  return (
    <li>
      <a
        ref={link}
        href={`#${formatTarget(chooseFirst(frame, isMoving))}`}
        aria-label={`${resource.name} ${label}, ${size}${isMoving ? ', moves' : ''}`}
        aria-current={isCurrent ? 'true' : undefined}
        title={`${name}, ${size}`}
        tabIndex={isStop ? 0 : -1}
        data-frame={id}
        onFocus={() => {
          focusedId.value = id;
          setIsPointedAt(true);
        }}
        onBlur={shows(false)}
        onMouseEnter={shows(true)}
        onMouseLeave={shows(false)}
      >
        {isBroken ? (
          <span class="card" data-word="no picture" />
        ) : isPicture(frame) ? (
          <img
            class={isCutOut(frame) ? 'whole' : undefined}
            loading="lazy"
            fetchpriority="low"
            decoding="async"
            alt=""
            onError={() => setIsBroken(true)}
            src={formatThumbnail(frame, isMoving && isPointedAt && mayMove())}
          />
        ) : (
          <span class="card" data-word={endingOfFile(name)} />
        )}
        {isMoving && <span class="moves" aria-hidden="true" />}
        {resource.name === 'attachment' && <span class="caption">{name}</span>}
      </a>
    </li>
  );
}

function mayMove(): boolean {
  return !matchMedia('(prefers-reduced-motion: reduce)').matches;
}
