import sharp from 'sharp';
import { fetchOk } from '../harness/service.ts';
import type { Stage } from './contest.ts';
import type { Contestant, RunningServer } from './contestants.ts';
import type { Rendering } from './originals.ts';

/** A contestant that runs. */
export interface Starter<Kind extends Contestant = Contestant> {
  readonly contestant: Kind;
  readonly server: RunningServer;
}

/** What each is asked for first. */
export interface Trial {
  readonly renderings: readonly Rendering[];
  /** Whether responses have to be just these images, or anything. */
  readonly isExact: boolean;
}

/** One for each format: the last ones, which are asked for in no round, or at the end of the last one. */
export function pickTrial(renderings: readonly Rendering[]): Trial {
  const byFormat = new Map(renderings.map((rendering) => [rendering.format, rendering]));
  return { renderings: [...byFormat.values()], isExact: true };
}

/** Starts the contestants that can run here and pass the trial; notes the absence of the others. */
export async function lineUp<Kind extends Contestant>(
  stage: Stage,
  contest: string,
  contestants: readonly Kind[],
  folder: string,
  trial: Trial,
): Promise<Starter<Kind>[]> {
  const starters: Starter<Kind>[] = [];
  for (const contestant of contestants) {
    let server: RunningServer | undefined;
    try {
      const missing = contestant.missing?.();
      if (missing !== undefined) throw new Error(missing);
      server = await contestant.start(folder);
      await tryOut(contestant, server, trial);
      starters.push({ contestant, server });
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      stage.noteAbsence(contest, contestant.name, why);
      await server?.stop();
    }
  }
  return starters;
}

/** @throws Error if it does not pass */
async function tryOut(
  { targetOf }: Contestant,
  { origin }: RunningServer,
  { renderings, isExact }: Trial,
): Promise<void> {
  for (const rendering of renderings) {
    const { body } = await fetchOk(origin, targetOf(rendering));
    if (isExact) await checkImage(body, rendering);
  }
}

/** A server that sends the original, or another size, has less to do. */
async function checkImage(body: Buffer, { widthPx, format, isAnimated }: Rendering): Promise<void> {
  const describe = (isMoving: boolean, name: string, width: number): string =>
    `${isMoving ? 'a moving' : 'a still'} ${name} of ${width} px`;
  const wanted = describe(isAnimated, format, widthPx);
  const facts = await sharp(body).metadata();
  const sent = describe((facts.pages ?? 1) > 1, facts.format, facts.width);
  if (sent !== wanted) throw new Error(`sends ${sent} for ${wanted}`);
}
