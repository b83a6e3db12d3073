import { Session } from 'node:inspector';
import { setFlagsFromString } from 'node:v8';
import { vi } from 'vitest';

const PARSERS = '/src/formats/';

/**
 * Counts the steps of parsers by V8's block coverage. A step is a loop iteration or a callback call; built-in methods
 * count as one. `load` must import the modules again: V8 counts only code compiled after the coverage starts.
 */
export async function withStepCounter<Modules>(
  load: () => Promise<Modules>,
  use: (modules: Modules, countSteps: (work: () => void) => number) => void,
): Promise<void> {
  const session = new Session();
  session.connect();
  // V8 does not count optimized code.
  for (const flag of ['--no-opt', '--no-use-osr', '--no-compilation-cache'])
    setFlagsFromString(flag);
  try {
    session.post('Profiler.enable');
    session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
    vi.resetModules();
    use(await load(), (work) => {
      takeSteps(session);
      work();
      return takeSteps(session);
    });
  } finally {
    for (const flag of ['--opt', '--use-osr', '--compilation-cache']) setFlagsFromString(flag);
    session.disconnect();
  }
}

/** Returns the steps since the last call. */
function takeSteps(session: Session): number {
  let steps = 0;
  session.post('Profiler.takePreciseCoverage', (error, { result }) => {
    if (error !== null) throw error;
    const parsers = result.filter(({ url }) => url.includes(PARSERS));
    for (const { ranges } of parsers.flatMap(({ functions }) => functions)) {
      for (const { count } of ranges) steps += count;
    }
  });
  return steps;
}
