import { signal } from '@preact/signals';
import { useRef, useState } from 'preact/hooks';

const CONFIRMATION_MS = 1_500;

const announcement = signal('');

/** Announces copies to screen readers. */
export function Announcer() {
  return (
    <p class="unseen" role="status">
      {announcement}
    </p>
  );
}

interface CopyButtonProps {
  /** Copied text in the announcement, such as `URL`. */
  readonly what: string;
  readonly text: string;
  /** Visible text of the button, if it differs from `name`. */
  readonly label?: string;
  readonly name: string;
}

/** Button that copies a text and confirms it. */
export function CopyButton({ what, text, label, name }: CopyButtonProps) {
  const [done, setDone] = useState<'copied' | 'not-copied'>();
  const timer = useRef(0);
  const copy = async (): Promise<void> => {
    // Browsers provide a clipboard only to pages from localhost or over https.
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
