import { FaultNote, faultAttributes } from '../fields.tsx';
import { target, typedUrl } from '../state.ts';
import { commitUrl, putUrl } from '../workbench.ts';
import { CopyButton } from './copy-button.tsx';

/** The URL as an editable field: an edited URL is requested verbatim, and the controls follow. */
export function Address() {
  const url = target.value === undefined ? '' : location.origin + target.value;
  return (
    <section class="address" aria-label="Address">
      <div class="line">
        <label class="soft" for="url">
          URL
        </label>
        <textarea
          id="url"
          name="url"
          rows={1}
          spellcheck={false}
          autocapitalize="off"
          autocomplete="off"
          value={typedUrl.value ?? url}
          onInput={({ currentTarget }) => putUrl(currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== 'Enter') return;
            event.preventDefault();
            commitUrl();
          }}
          onBlur={commitUrl}
          onFocus={({ currentTarget }) => currentTarget.select()}
          {...faultAttributes('url')}
        />
        <CopyButton what="URL" name="Copy the URL" label="Copy" text={url} />
      </div>
      <FaultNote path="url" />
    </section>
  );
}
