import { useEffect, useRef, useState } from 'preact/hooks';
import { ASSET_WIDTHS_PX } from '../../../contract/media-query.ts';
import { withoutAliases } from '../effects.ts';
import { type Exchange, send } from '../exchange.ts';
import { Select } from '../fields.tsx';
import { formatBytes, formatFraction, formatMs } from '../labels.ts';
import { formatTarget, type MediaChoice, withWidth, wordsOf } from '../media-choice.ts';
import { choice, isPictureShown } from '../state.ts';
import { Loupe, type SizedPicture } from './loupe.tsx';

/** Changes come in groups, so pictures are requested after this time without a change. */
const DEBOUNCE_MS = 300;

const asAbove = { format: '', size: '' } as const;

/** Settings of one side; an empty string keeps the setting of the main choice. */
interface SideChoice {
  readonly quality: string;
  readonly format: string;
  readonly size: string;
}

interface ComparedPicture extends SizedPicture {
  readonly exchange: Exchange;
}

type Pair = readonly [left: ComparedPicture, right: ComparedPicture];

/** The same picture in two variants. Closed until needed, since it costs two renders. */
export function Comparison() {
  const chosen = choice.value;
  const [isOpen, setIsOpen] = useState(false);
  const hasQuality = chosen?.resource.parameters.some(({ name }) => name === 'quality') ?? false;
  if (chosen === undefined || !isPictureShown.value || !hasQuality) return null;
  return (
    <section id="compare-section" aria-labelledby="compare-title">
      <div class="heading">
        <h3 id="compare-title">Two variants</h3>
        <p class="soft">Any two of format, quality and size, side by side</p>
        <button
          type="button"
          aria-expanded={isOpen}
          aria-controls={isOpen ? 'compare' : undefined}
          onClick={() => setIsOpen(!isOpen)}
        >
          {isOpen ? 'Close the comparison' : 'Compare'}
        </button>
      </div>
      {isOpen && <Compared chosen={chosen} />}
    </section>
  );
}

function Compared({ chosen }: { readonly chosen: MediaChoice }) {
  const root = useRef<HTMLDivElement>(null);
  const [isSeen, setIsSeen] = useState(false);
  const [left, setLeft] = useState<SideChoice>({ ...asAbove, quality: 'lossless' });
  const [right, setRight] = useState<SideChoice>({ ...asAbove, quality: 'low' });
  const [pair, setPair] = useState<Pair | 'nothing'>();
  // A change costs two renders, so requests wait until the comparison is visible.
  useEffect(() => {
    const watch = new IntersectionObserver((entries) =>
      setIsSeen(entries.some(({ isIntersecting }) => isIntersecting)),
    );
    if (root.current !== null) watch.observe(root.current);
    return () => watch.disconnect();
  }, []);
  const [first, second] = [left, right].map((side) => formatTarget(applySide(chosen, side)));
  useEffect(() => {
    if (!isSeen || first === undefined || second === undefined) return;
    let isWanted = true;
    const timer = setTimeout(async () => {
      const loaded = await loadPair(first, second).catch(() => undefined);
      if (loaded === undefined) return;
      if (isWanted) setPair(loaded);
      else if (loaded !== 'nothing') freePictures(loaded);
    }, DEBOUNCE_MS);
    return () => {
      isWanted = false;
      clearTimeout(timer);
    };
  }, [isSeen, first, second]);
  useEffect(() => () => (pair === 'nothing' ? undefined : freePictures(pair ?? [])), [pair]);
  const shown = pair === 'nothing' ? undefined : pair;
  return (
    <div class="compare" id="compare" ref={root}>
      <div class="sides">
        <SideControls name="left" chosen={chosen} side={left} onChange={setLeft} />
        <SideControls name="right" chosen={chosen} side={right} onChange={setRight} />
      </div>
      {shown !== undefined && <Loupe left={shown[0]} right={shown[1]} />}
      <div class="notes">
        <p class="side">{shown && <Notes picture={shown[0]} />}</p>
        <p class="side">
          {shown && <Notes picture={shown[1]} of={shown[0]} />}
          {pair === 'nothing' && <span class="note">Nothing to compare</span>}
        </p>
      </div>
    </div>
  );
}

interface SideControlsProps {
  readonly name: 'left' | 'right';
  readonly chosen: MediaChoice;
  readonly side: SideChoice;
  readonly onChange: (side: SideChoice) => void;
}

function SideControls({ name, chosen, side, onChange }: SideControlsProps) {
  const { resource } = chosen;
  const { extensions } = resource;
  const formats = withoutAliases(extensions.length > 0 ? extensions : wordsOf(resource, 'format'));
  const lists: Readonly<Record<keyof SideChoice, readonly string[]>> = {
    format: ['', ...formats],
    size: ['', ...ASSET_WIDTHS_PX.map(String)],
    quality: wordsOf(resource, 'quality'),
  };
  return (
    <div class="side">
      {(['format', 'size', 'quality'] as const).map((part) => (
        <Select
          key={part}
          label={`The ${part} on the ${name}`}
          words={lists[part]}
          value={side[part]}
          textOf={(word) => word || `${part} as above`}
          onPick={(word) => onChange({ ...side, [part]: word })}
        />
      ))}
    </div>
  );
}

interface NotesProps {
  readonly picture: ComparedPicture;
  readonly of?: ComparedPicture;
}

function Notes({ picture: { exchange, width, height }, of }: NotesProps) {
  const { sizeBytes, totalMs } = exchange;
  const fraction =
    of === undefined ? '' : `, ${formatFraction(sizeBytes, of.exchange.sizeBytes)} of it`;
  return (
    <>
      <span class="note">{`${formatBytes(sizeBytes)}${fraction}`}</span>
      <span class="soft took">{`${formatMs(totalMs)}, ${width} × ${height} px`}</span>
    </>
  );
}

function applySide(chosen: MediaChoice, { format, quality, size }: SideChoice): MediaChoice {
  const sized = size === '' ? chosen : withWidth(chosen, size);
  const inQuality = { ...sized, parameters: { ...sized.parameters, quality } };
  if (format === '') return inQuality;
  if (chosen.extension !== '') return { ...inQuality, extension: format };
  return { ...inQuality, parameters: { ...inQuality.parameters, format } };
}

async function loadPair(first: string, second: string): Promise<Pair | 'nothing'> {
  const [left, right] = (await Promise.all([send(first), send(second)])).map(toPicture);
  if (left !== undefined && right !== undefined) return [left, right];
  freePictures([left, right]);
  return 'nothing';
}

function toPicture(exchange: Exchange): ComparedPicture | undefined {
  const { body } = exchange;
  if (body.kind !== 'picture' || body.width === 0) return undefined;
  const { width, height } = body;
  return { exchange, url: URL.createObjectURL(body.blob), width, height };
}

function freePictures(pictures: readonly (ComparedPicture | undefined)[]): void {
  for (const picture of pictures) if (picture !== undefined) URL.revokeObjectURL(picture.url);
}
