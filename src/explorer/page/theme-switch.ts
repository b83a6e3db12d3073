/** Key in the storage; `auto` is stored as a missing value. */
const KEY = 'darkroom-theme';

const root = document.documentElement;
const choices = document.querySelector<HTMLFieldSetElement>('#theme');

function apply(theme: string): void {
  if (theme === 'light' || theme === 'dark') root.dataset.theme = theme;
  else delete root.dataset.theme;
}

/** Stores the theme; browsers that are set to store nothing throw instead. */
function keep(theme: string): void {
  try {
    if (theme === 'auto') localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, theme);
  } catch {}
}

function readKept(): string {
  try {
    return localStorage.getItem(KEY) ?? 'auto';
  } catch {
    return 'auto';
  }
}

const kept = readKept();
apply(kept);
for (const input of choices?.querySelectorAll('input') ?? []) input.checked = input.value === kept;
choices?.removeAttribute('hidden');
choices?.addEventListener('change', ({ target }) => {
  if (!(target instanceof HTMLInputElement)) return;
  apply(target.value);
  keep(target.value);
});
