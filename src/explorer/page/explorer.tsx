import { effect } from '@preact/signals';
import { render } from 'preact';
import { Address } from './bench/address.tsx';
import { Announcer } from './bench/copy-button.tsx';
import { OriginalSheet } from './bench/original-sheet.tsx';
import { ResponseSheet } from './bench/response.tsx';
import { SizeLadder } from './bench/size-ladder.tsx';
import { Stage } from './bench/stage.tsx';
import { TakeAwaySheet } from './bench/take-away-sheet.tsx';
import { UrlForm } from './bench/url-form.tsx';
import { Comparison } from './compare/comparison.tsx';
import { loadOriginals } from './originals.ts';
import { ContactSheet } from './sheet/contact-sheet.tsx';
import { choice, contract, resources, view } from './state.ts';
import { nameOf } from './take-away.ts';
import { follow } from './workbench.ts';

/** The sheet of all originals, and the workbench with one of them. */
function Explorer() {
  return (
    <>
      <ContactSheet />
      <article class="bench" id="bench" tabIndex={-1} aria-labelledby="original">
        <p class="back">
          <a href="#sheet">All originals</a>
        </p>
        <OriginalSheet />
        <div class="exposure">
          <div class="kept">
            <Address />
            <Stage />
          </div>
          <UrlForm />
        </div>
        <TakeAwaySheet />
        <ResponseSheet />
        <SizeLadder />
        <Comparison />
        <Announcer />
      </article>
    </>
  );
}

const main = document.querySelector('main');
if (main === null) throw new Error('The page has no main part.');
contract.value = await (await fetch('/explorer/contract.json')).json();
await loadOriginals(resources.value);
effect(() => {
  document.body.dataset.view = view.value;
});
effect(() => {
  if (choice.value !== undefined) document.title = `${nameOf(choice.value)} · Darkroom explorer`;
});
follow();
// The browser cannot scroll to a hidden element.
main.removeAttribute('hidden');
render(<Explorer />, main);
addEventListener('hashchange', () => {
  follow();
  if (matchMedia('(max-width: 60rem)').matches && view.value === 'bench') {
    document.getElementById('bench')?.focus();
    scrollTo({ top: 0 });
  }
});
