import { signal } from '@preact/signals';
import { useRef, useState } from 'preact/hooks';

const CONFIRMATION_MS = 1_500;

/** Last action, for screen readers. */
const announcement = signal('');

/** Announces what was copied to screen readers. */
export function Announcer() {
  return (
    <p class="unseen" role="status">
      {announcement}
    </p>
  );
}

interface CopyButtonProps {
  /** Copied thing, as the announcement names it: `URL`. */
  readonly what: string;
  readonly text: string;
  /** Visible text of the button, if it differs from `name`. */
  readonly label?: string;
  readonly name: string;
}

/** A button that copies a text; a mark shows what the announcer says. */
export function CopyButton({ what, text, label, name }: CopyButtonProps) {
  const [done, setDone] = useState<'copied' | 'not-copied'>();
  const timer = useRef(0);
  const copy = async (): Promise<void> => {
    // Browsers have a clipboard only for pages of this machine and of https.
    const isCopied = await navigator.clipboard?.writeText(text).then(
      () => true,
      () => false,
    );
    setDone(isCopied ? 'copied' : 'not-copied');
    announcement.value = '';
    announcement.value = isCopied ? `${what} copied` : `${what} could not be copied`;
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => {
      setDone(undefined);
      announcement.value = '';
    }, CONFIRMATION_MS);
  };
  return (
    <button type="button" class={done} aria-label={name} disabled={text === ''} onClick={copy}>
      {label ?? name}
    </button>
  );
}
