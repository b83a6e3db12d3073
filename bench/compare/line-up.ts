import sharp from 'sharp';
import { type FetchedResponse, fetchOk } from '../harness/service.ts';
import type { Stage } from './contest.ts';
import type { Contestant, RunningServer } from './contestants.ts';
import type { Rendering } from './originals.ts';

/** A contestant that runs. */
export interface Starter<Kind> {
  readonly contestant: Kind;
  readonly server: RunningServer;
}

/** Starts the contestants that can run here and pass the trial; notes the absence of the others. */
export async function lineUp<Kind extends Pick<Contestant, 'name' | 'missing' | 'start'>>(
  stage: Stage,
  contest: string,
  contestants: readonly Kind[],
  folder: string,
  tryOut: (contestant: Kind, origin: string) => Promise<unknown>,
): Promise<Starter<Kind>[]> {
  const starters: Starter<Kind>[] = [];
  for (const contestant of contestants) {
    let server: RunningServer | undefined;
    try {
      const missing = contestant.missing?.();
      if (missing !== undefined) throw new Error(missing);
      server = await contestant.start(folder);
      await tryOut(contestant, server.origin);
      starters.push({ contestant, server });
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      stage.noteAbsence(contest, contestant.name, why);
      await server?.stop();
    }
  }
  return starters;
}

/**
 * A trial that asks for one rendering of each format: the last ones, which are asked for in no round, or at the end
 * of the last one. A server that sends the original, or another size, has less to do, and does not pass.
 */
export function createTrial(
  renderings: readonly Rendering[],
): (contestant: Pick<Contestant, 'targetOf'>, origin: string) => Promise<void> {
  const byFormat = new Map(renderings.map((rendering) => [rendering.format, rendering]));
  return async ({ targetOf }, origin) => {
    for (const rendering of byFormat.values()) {
      await checkImage(await fetchOk(origin, targetOf(rendering)), rendering);
    }
  };
}

async function checkImage(
  { body }: FetchedResponse,
  { widthPx, format, isAnimated }: Rendering,
): Promise<void> {
  const describe = (isMoving: boolean, name: string, width: number): string =>
    `${isMoving ? 'a moving' : 'a still'} ${name} of ${width} px`;
  const wanted = describe(isAnimated, format, widthPx);
  const facts = await sharp(body).metadata();
  const sent = describe((facts.pages ?? 1) > 1, facts.format, facts.width);
  if (sent !== wanted) throw new Error(`sends ${sent} for ${wanted}`);
}
