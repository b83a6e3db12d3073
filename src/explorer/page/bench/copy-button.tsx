import { signal } from '@preact/signals';
import { useRef, useState } from 'preact/hooks';

/** How long a button says that it has copied. */
const CONFIRMATION_MS = 1_500;

/** What was done last, for those who do not see the buttons. */
const announcement = signal('');

/** Says aloud what was copied. */
export function Announcer() {
  return (
    <p class="unseen" role="status">
      {announcement}
    </p>
  );
}

interface CopyButtonProps {
  /** What is copied, as it is announced: `URL`. */
  readonly what: string;
  readonly text: string;
  /** What stands on the button, where that is not its whole name. */
  readonly label?: string;
  readonly name: string;
}

/** A button that copies a text; a mark says to the eye what the announcer says to the ear. */
export function CopyButton({ what, text, label, name }: CopyButtonProps) {
  const [done, setDone] = useState<'copied' | 'not-copied'>();
  const timer = useRef(0);
  const copy = async (): Promise<void> => {
    const isCopied = await write(text);
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
    <button type="button" class={done} aria-label={name} onClick={copy}>
      {label ?? name}
    </button>
  );
}

/** Browsers let pages of this machine and of https alone write to the clipboard by the first of these ways. */
async function write(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return writeBySelection(text);
  }
}

function writeBySelection(text: string): boolean {
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'unseen';
  const focused = document.activeElement;
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand('copy');
  area.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return isCopied;
}
