import { formatBytes } from '../labels.ts';
import { choice, currentFacts, currentFrame } from '../state.ts';
import { nameOf } from '../take-away.ts';

/** The original: its name, and the facts of its file. */
export function OriginalSheet() {
  const chosen = choice.value;
  const known = currentFacts.value;
  const sizeBytes = currentFrame.value?.sizeBytes ?? known?.sizeBytes;
  const facts: readonly (readonly [string, string])[] = [
    ...(known === undefined
      ? []
      : ([
          ['Format', known.format],
          ['Dimensions', `${known.widthPx} × ${known.heightPx}`],
          ['Frames', String(known.frames)],
        ] as const)),
    ['Bytes', sizeBytes === undefined ? 'not in the list' : formatBytes(sizeBytes)],
  ];
  return (
    <header class="title">
      <h2 id="original">{(chosen && nameOf(chosen)) || 'No original'}</h2>
      <p class="soft" id="provenance">
        {chosen?.resource.name}
      </p>
      {chosen !== undefined && (
        <dl class="original-facts" id="original-facts" aria-label="The original">
          {facts.map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
      )}
    </header>
  );
}
