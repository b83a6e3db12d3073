import { type Fault, faults, isWaiting } from '../state.ts';

/** What the API says is wrong with a field; while a response is awaited, nothing is. */
export function findFaults(path: string): readonly Fault[] {
  return isWaiting.value ? [] : faults.value.filter((fault) => fault.path === path);
}

/** Attributes of a field that tie it to its faults. */
export function faultAttributes(path: string, found: readonly Fault[]) {
  return found.length === 0
    ? {}
    : ({ 'aria-invalid': 'true', 'aria-describedby': `${path}-fault` } as const);
}

/** What is wrong with a field, below it. */
export function FaultNote({ path }: { readonly path: string }) {
  const found = findFaults(path);
  if (found.length === 0) return null;
  return (
    <p class="fault-note" id={`${path}-fault`}>
      {found.map(({ message }) => message).join(' ')}
    </p>
  );
}
