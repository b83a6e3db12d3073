import { formatCurl } from '../media-choice.ts';
import { choice, exchange, isBlank, target } from '../state.ts';
import { fileNameOf, formatSrcset } from '../take-away.ts';
import { CopyButton } from './copy-button.tsx';

/** Exports: texts for pages, the picture itself, and a line for a shell. */
export function TakeAwaySheet() {
  const chosen = choice.value;
  if (chosen === undefined || isBlank.value || target.value === undefined) return null;
  const body = exchange.value?.body;
  const taken = {
    choice: chosen,
    origin: location.origin,
    size: body?.kind === 'picture' && body.width > 0 ? body : undefined,
  };
  const curl = formatCurl(new URL(location.origin + target.value).href, chosen);
  return (
    <section class="take-away" aria-labelledby="take-away-title">
      <div class="heading">
        <h3 id="take-away-title">Copy as</h3>
        <div class="buttons">
          <CopyButton what="srcset" name="Copy srcset" text={formatSrcset(taken)} />
          <a class="button" href={target.value} target="_blank" rel="noopener">
            Open
          </a>
          <a class="button" href={target.value} download={fileNameOf(chosen)}>
            Download
          </a>
        </div>
      </div>
      <div class="line" id="curl">
        <span class="soft">curl</span>
        <code>{curl}</code>
        <CopyButton what="curl" name="Copy the curl" label="Copy" text={curl} />
      </div>
    </section>
  );
}
