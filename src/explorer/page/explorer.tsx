import { effect } from '@preact/signals';
import { render } from 'preact';
import { Address } from './bench/address.tsx';
import { Announcer } from './bench/copy-button.tsx';
import { ResponseSheet } from './bench/response.tsx';
import { SizeLadder } from './bench/size-ladder.tsx';
import { Stage, StageActions } from './bench/stage.tsx';
import { UrlForm } from './bench/url-form.tsx';
import { Comparison } from './compare/comparison.tsx';
import { ContactSheet } from './contact-sheet.tsx';
import { nameOf } from './export.ts';
import { formatBytes, formatSeconds } from './labels.ts';
import { loadOriginals } from './originals.ts';
import { choice, contract, currentEntry, currentProperties, resources, view } from './state.ts';
import { syncFromAddress } from './workbench.ts';

function Explorer() {
  return (
    <>
      <ContactSheet />
      <article class="bench" id="bench" tabIndex={-1} aria-labelledby="original">
        <p class="back">
          <a href="#sheet">All originals</a>
        </p>
        <OriginalSheet />
        <Address />
        <div class="exposure">
          <div class="kept">
            <Stage />
            <StageActions />
          </div>
          <UrlForm />
        </div>
        <ResponseSheet />
        <SizeLadder />
        <Comparison />
        <Announcer />
      </article>
    </>
  );
}

function OriginalSheet() {
  const chosen = choice.value;
  const original = currentProperties.value;
  const sizeBytes = currentEntry.value?.sizeBytes ?? original?.sizeBytes;
  const rows: readonly (readonly [string, string])[] = [
    ...(original === undefined
      ? []
      : ([
          ['Format', original.format],
          ['Dimensions', `${original.widthPx} × ${original.heightPx}`],
          ...(original.codec === undefined
            ? [['Frames', String(original.frames)] as const]
            : [['Codec', original.codec] as const]),
          ...(original.durationS === undefined
            ? []
            : [['Duration', formatSeconds(original.durationS)] as const]),
        ] as const)),
    sizeBytes === undefined ? ['Original', 'unknown'] : ['Bytes', formatBytes(sizeBytes)],
  ];
  return (
    <header class="title">
      <h2 id="original">{(chosen && nameOf(chosen)) || 'No original'}</h2>
      <p class="soft" id="provenance">
        {chosen?.resource.name}
      </p>
      {chosen !== undefined && (
        <dl class="original-facts" id="original-facts" aria-label="The original">
          {rows.map(([name, value]) => (
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

const main = document.querySelector('main');
if (main === null) throw new Error('The page has no <main> element.');
contract.value = await (await fetch('/explorer/contract.json')).json();
await loadOriginals(resources.value);
effect(() => {
  document.body.dataset.view = view.value;
});
effect(() => {
  if (choice.value !== undefined) document.title = `${nameOf(choice.value)} · Darkroom explorer`;
});
syncFromAddress();
// The browser cannot scroll to a hidden element.
main.removeAttribute('hidden');
render(<Explorer />, main);
addEventListener('hashchange', () => {
  syncFromAddress();
  if (matchMedia('(max-width: 60rem)').matches && view.value === 'bench') {
    document.getElementById('bench')?.focus();
    scrollTo({ top: 0 });
  }
});
