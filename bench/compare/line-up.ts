import sharp from 'sharp';
import { get, HttpClient } from '../harness/exchange.ts';
import type { Contestant, RunningServer } from './contestants.ts';
import type { Rendering } from './originals.ts';
import type { Stage } from './workload.ts';

/** A contestant that runs. */
export interface Starter<Kind extends Contestant = Contestant> {
  readonly contestant: Kind;
  readonly server: RunningServer;
}

/** What each is asked for first. */
export interface Trial {
  readonly renderings: readonly Rendering[];
  /** Whether answers have to be just these images, or anything. */
  readonly isExact: boolean;
}

/**
 * Starts the contestants that can run here and that answer rightly; the stage is told of the others, and why.
 */
export async function lineUp<Kind extends Contestant>(
  stage: Stage,
  contest: string,
  contestants: readonly Kind[],
  folder: string,
  trial: Trial,
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
    const fault = await findFault(contestant, server.origin, trial);
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

async function findFault(
  { targetOf }: Contestant,
  origin: string,
  { renderings, isExact }: Trial,
): Promise<string | undefined> {
  const client = new HttpClient(origin);
  try {
    for (const rendering of renderings) {
      const target = targetOf(rendering);
      const { status, ending, failure, body } = await client.ask(get(target));
      if (status !== 200 || ending !== 'complete') {
        return `answers ${status ?? failure ?? ending} to ${target}`;
      }
      const difference = isExact ? await findDifference(body, rendering) : undefined;
      if (difference !== undefined) return difference;
    }
    return undefined;
  } finally {
    client.close();
  }
}

/** Whoever sends the original, or another size, has less to do. */
async function findDifference(
  body: Buffer,
  { widthPx, format, isAnimated }: Rendering,
): Promise<string | undefined> {
  const wanted = `${isAnimated ? 'a moving' : 'a still'} ${format} of ${widthPx} px`;
  const facts = await sharp(body)
    .metadata()
    .catch(() => undefined);
  if (facts === undefined) return `sends no image for ${wanted}`;
  const sent = `${(facts.pages ?? 1) > 1 ? 'a moving' : 'a still'} ${facts.format} of ${facts.width} px`;
  return sent === wanted ? undefined : `sends ${sent} for ${wanted}`;
}
