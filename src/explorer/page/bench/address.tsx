import { signal } from '@preact/signals';
import { formatImage } from '../export.ts';
import { FaultNote, faultAttributes } from '../fields.tsx';
import { formatCurl } from '../media-choice.ts';
import { choice, currentProperties, exchange, isBlank, target, typedUrl } from '../state.ts';
import { setUrl } from '../workbench.ts';
import { CopyButton } from './copy-button.tsx';

const copyFormats = ['URL', 'HTML', 'curl'] as const;

type CopyFormat = (typeof copyFormats)[number];

const chosenFormat = signal<CopyFormat>('URL');

/** Editable URL, or HTML or a command that contains it. An edited URL is requested verbatim and updates the controls. */
export function Address() {
  const texts = formatTexts();
  const format = texts[chosenFormat.value] === undefined ? 'URL' : chosenFormat.value;
  const isUrl = format === 'URL';
  const text = texts[format] ?? '';
  return (
    <section class="address" aria-label="Address">
      <div class="line">
        <fieldset class="segments" aria-label="Copy as">
          {copyFormats.map((each) => (
            <label key={each}>
              <input
                type="radio"
                name="copy-as"
                value={each}
                checked={each === format}
                disabled={each !== 'URL' && texts[each] === undefined}
                onChange={() => {
                  chosenFormat.value = each;
                }}
              />
              <span>{each}</span>
            </label>
          ))}
        </fieldset>
        <textarea
          id="url"
          name="url"
          aria-label={format}
          rows={1}
          spellcheck={false}
          autocapitalize="off"
          autocomplete="off"
          readOnly={!isUrl}
          value={isUrl ? (typedUrl.value ?? text) : text}
          onInput={({ currentTarget }) => setUrl(currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === 'Enter') event.preventDefault();
          }}
          onFocus={({ currentTarget }) => currentTarget.select()}
          {...faultAttributes('url')}
        />
        <CopyButton what={format} name={`Copy the ${format}`} label="Copy" text={text} />
      </div>
      <FaultNote path="url" />
    </section>
  );
}

/** Formats the texts to copy; only pictures have HTML. */
function formatTexts(): Readonly<Partial<Record<CopyFormat, string>>> {
  const chosen = choice.value;
  if (chosen === undefined || isBlank.value || target.value === undefined) return {};
  const body = exchange.value?.body;
  const properties = currentProperties.value;
  const original = properties && { width: properties.widthPx, height: properties.heightPx };
  return {
    URL: location.origin + target.value,
    curl: formatCurl(new URL(location.origin + target.value).href, chosen),
    ...(body?.kind === 'picture' && {
      HTML: formatImage({ choice: chosen, origin: location.origin, size: body, original }),
    }),
  };
}
