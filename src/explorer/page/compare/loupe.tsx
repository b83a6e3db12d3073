import { useState } from 'preact/hooks';

/** Device pixels per pixel of the larger picture; 0 fits it into the view. */
const ZOOMS = [0, 1, 2, 4, 8] as const;

/** Distance by which an arrow key moves a picture, in CSS pixels. */
const STEP_PX = 48;

export interface SizedPicture {
  readonly url: string;
  readonly width: number;
  readonly height: number;
}

/** Offset of a picture from the centre of its view, in CSS pixels. */
interface Pan {
  readonly x: number;
  readonly y: number;
}

interface LoupeProps {
  readonly left: SizedPicture;
  readonly right: SizedPicture;
}

/** Two pictures on top of each other, with a slider between them. When enlarged, dragging and arrow keys move both. */
export function Loupe({ left, right }: LoupeProps) {
  const [split, setSplit] = useState(50);
  const [zoom, setZoom] = useState(0);
  const [pan, setPan] = useState<Pan>({ x: 0, y: 0 });
  const isZoomed = zoom > 0;
  const larger = left.width >= right.width ? left : right;
  const widthPx = (larger.width * zoom) / devicePixelRatio;
  const heightPx = (larger.height * zoom) / devicePixelRatio;

  const overhangOf = (view: HTMLElement): Pan => ({
    x: widthPx - view.clientWidth,
    y: heightPx - view.clientHeight,
  });
  const move = (view: HTMLElement, x: number, y: number): void => {
    setPan((before) => clampPan({ x: before.x + x, y: before.y + y }, overhangOf(view)));
  };
  const enlarge = (next: number): void => {
    const factor = zoom === 0 ? 0 : next / zoom;
    setPan(({ x, y }) => ({ x: x * factor, y: y * factor }));
    setZoom(next);
  };
  const style = isZoomed
    ? {
        width: `${widthPx}px`,
        height: `${heightPx}px`,
        transform: `translate(calc(-50% + ${pan.x}px), calc(-50% + ${pan.y}px))`,
        imageRendering: zoom > 1 ? 'pixelated' : 'auto',
      }
    : undefined;
  const layer = (name: 'left' | 'right', { url }: SizedPicture) => (
    <div class={`layer ${name}`}>
      <img src={url} alt={`The ${name} of the two`} style={style} draggable={false} />
    </div>
  );
  return (
    <>
      <fieldset class="segments zoom" aria-label="Zoom">
        {ZOOMS.map((each) => (
          <label key={each}>
            <input
              type="radio"
              name="zoom"
              value={each}
              checked={each === zoom}
              onChange={() => enlarge(each)}
            />
            <span>{each === 0 ? 'Fit' : each === 1 ? '1:1' : `${each}×`}</span>
          </label>
        ))}
      </fieldset>
      <div class={isZoomed ? 'view zoomed' : 'view'}>
        <fieldset
          class="pair"
          style={{ '--split': `${split}%` }}
          tabIndex={isZoomed ? 0 : undefined}
          aria-label={isZoomed ? 'Both pictures; the arrow keys move them' : 'Both pictures'}
          ref={(view) => {
            // After the window becomes narrower, the picture must still fill the view.
            if (view === null || !isZoomed) return;
            const clamped = clampPan(pan, overhangOf(view));
            if (clamped.x !== pan.x || clamped.y !== pan.y) setPan(clamped);
          }}
          onKeyDown={(event) => {
            const direction = {
              ArrowLeft: [1, 0],
              ArrowRight: [-1, 0],
              ArrowUp: [0, 1],
              ArrowDown: [0, -1],
            }[event.key];
            const [x, y] = direction ?? [];
            if (!isZoomed || event.target !== event.currentTarget) return;
            if (x === undefined || y === undefined) return;
            event.preventDefault();
            move(event.currentTarget, x * STEP_PX, y * STEP_PX);
          }}
          onPointerDown={(event) => {
            if (!isZoomed || event.target instanceof HTMLInputElement) return;
            event.currentTarget.setPointerCapture(event.pointerId);
          }}
          onPointerMove={(event) => {
            if (!event.currentTarget.hasPointerCapture(event.pointerId)) return;
            move(event.currentTarget, event.movementX, event.movementY);
          }}
        >
          {layer('left', left)}
          {layer('right', right)}
          <span class="divider" />
          <input
            type="range"
            min={0}
            max={100}
            value={split}
            aria-label="Visible part of the left picture, in percent"
            onInput={({ currentTarget }) => setSplit(Number(currentTarget.value))}
          />
        </fieldset>
      </div>
    </>
  );
}

/** Keeps the edges of a picture outside its view. @param overhang picture size minus view size */
function clampPan({ x, y }: Pan, overhang: Pan): Pan {
  return { x: clamp(x, overhang.x / 2), y: clamp(y, overhang.y / 2) };
}

function clamp(value: number, max: number): number {
  return Math.max(-Math.max(0, max), Math.min(Math.max(0, max), value)) + 0;
}
