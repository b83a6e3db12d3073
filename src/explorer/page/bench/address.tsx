import { signal } from '@preact/signals';
import { FaultNote, faultAttributes } from '../fields.tsx';
import { formatCurl } from '../media-choice.ts';
import { choice, currentProperties, exchange, isBlank, target, typedUrl } from '../state.ts';
import { formatImage } from '../take-away.ts';
import { putUrl } from '../workbench.ts';
import { CopyButton } from './copy-button.tsx';

const forms = ['URL', 'HTML', 'curl'] as const;

type Form = (typeof forms)[number];

const chosenForm = signal<Form>('URL');

/** The URL as an editable field, or a text that contains it: an edited URL is requested verbatim, and the controls follow. */
export function Address() {
  const texts = formatTexts();
  const form = texts[chosenForm.value] === undefined ? 'URL' : chosenForm.value;
  const isUrl = form === 'URL';
  const text = texts[form] ?? '';
  return (
    <section class="address" aria-label="Address">
      <div class="line">
        <fieldset class="segments" aria-label="Copy as">
          {forms.map((each) => (
            <label key={each}>
              <input
                type="radio"
                name="copy-as"
                value={each}
                checked={each === form}
                disabled={each !== 'URL' && texts[each] === undefined}
                onChange={() => {
                  chosenForm.value = each;
                }}
              />
              <span>{each}</span>
            </label>
          ))}
        </fieldset>
        <textarea
          id="url"
          name="url"
          aria-label={form}
          rows={1}
          spellcheck={false}
          autocapitalize="off"
          autocomplete="off"
          readOnly={!isUrl}
          value={isUrl ? (typedUrl.value ?? text) : text}
          onInput={({ currentTarget }) => putUrl(currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === 'Enter') event.preventDefault();
          }}
          onFocus={({ currentTarget }) => currentTarget.select()}
          {...faultAttributes('url')}
        />
        <CopyButton what={form} name={`Copy the ${form}`} label="Copy" text={text} />
      </div>
      <FaultNote path="url" />
    </section>
  );
}

/** Formats what can be copied now; only a picture has HTML. */
function formatTexts(): Readonly<Partial<Record<Form, string>>> {
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
