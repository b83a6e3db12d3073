import { get, HttpClient } from '../harness/exchange.ts';
import type { Contestant, RunningServer } from './contestants.ts';
import type { Rendering } from './originals.ts';
import type { Stage } from './workload.ts';

/** A contestant that runs. */
export interface Starter<Kind extends Contestant = Contestant> {
  readonly contestant: Kind;
  readonly server: RunningServer;
}

/**
 * Starts the contestants that can run here and that answer; the stage is told of the others, and why.
 *
 * @param trial what each is asked for first
 */
export async function lineUp<Kind extends Contestant>(
  stage: Stage,
  contest: string,
  contestants: readonly Kind[],
  folder: string,
  trial: Rendering | undefined,
): Promise<Starter<Kind>[]> {
  const starters: Starter<Kind>[] = [];
  for (const contestant of contestants) {
    const missing = contestant.missing?.();
    if (missing !== undefined) {
      stage.excuse(contest, contestant.name, missing);
      continue;
    }
    const server = await startOrExcuse(stage, contest, contestant, folder);
    if (server === undefined) continue;
    const fault = trial && (await findFault(server.origin, contestant.targetOf(trial)));
    if (fault === undefined) starters.push({ contestant, server });
    else {
      stage.excuse(contest, contestant.name, fault);
      await server.stop(5_000);
    }
  }
  return starters;
}

async function startOrExcuse(
  stage: Stage,
  contest: string,
  { name, start }: Contestant,
  folder: string,
): Promise<RunningServer | undefined> {
  try {
    return await start(folder);
  } catch (error) {
    stage.excuse(contest, name, error instanceof Error ? error.message : String(error));
    return undefined;
  }
}

async function findFault(origin: string, target: string): Promise<string | undefined> {
  const client = new HttpClient(origin);
  try {
    const { status, ending, failure } = await client.ask(get(target));
    if (status === 200 && ending === 'complete') return undefined;
    return `answers ${status ?? failure ?? ending} to ${target}`;
  } finally {
    client.close();
  }
}
