import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { patient } from '../support/patient.ts';
import { type ServiceProcess, startService } from '../support/processes/service-process.ts';
import { bytesOf, SurfaceModel } from './surface-model.ts';
import { type Conversation, conversations, MARKER, type SoundRequest } from './surface-requests.ts';
import { createSurfaceStorage, type SurfaceStorage } from './surface-storage.ts';
import { openWire, readAnswer, scriptOf, type Wire, type WireAnswer } from './wire.ts';

/** How many conversations are held; a nightly run may set more. */
const RUNS = Number(process.env.SURFACE_RUNS ?? '5000');
/** Fixed, so that a gate is no lottery; another one is another walk. */
const SEED = Number(process.env.SURFACE_SEED ?? '20240514');

/** Asked for at the end of a conversation: an answer too many before would come in its place. */
const SENTINEL = 'GET /avatars/5.png HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';

let storage: SurfaceStorage;
let service: ServiceProcess;
let port: number;
let model: SurfaceModel;
const keys: string[] = [];

beforeAll(async () => {
  storage = await createSurfaceStorage();
  keys.push(...storage.originals.keys());
  service = await startService({
    STORAGE_DIR: storage.root,
    ...patient,
    // What was learned once stays: the store is not asked twice.
    CACHE_REVALIDATE_SECONDS: '31536000',
  });
  port = Number(new URL(service.origin).port);
  model = new SurfaceModel(port, storage.originals);
});
afterAll(async () => {
  await service.stop();
  await storage.remove();
});

/** Whether the service says goodbye after this request (RFC 9112 §9.3). */
function isFinal({ version, headers }: SoundRequest): boolean {
  const options = headers.flatMap(([name, value]) =>
    name.toLowerCase() === 'connection' ? value.toLowerCase().split(/[ ,]+/) : [],
  );
  if (version === '1.0') return true; // none of them is drawn with keep-alive
  // Whoever expects to be told to go on, and is answered instead, may or may not send its body; whoever
  // asks for another protocol may begin to speak it.
  const isWaiting = headers.some(([name]) => ['expect', 'upgrade'].includes(name.toLowerCase()));
  return options.includes('close') || isWaiting;
}

/** Reads and checks the answer due for a request; false where the service has hung up instead. */
async function checkNext(wire: Wire, request: SoundRequest, mayBeCut: boolean): Promise<boolean> {
  const read = await wire.next(request.method === 'HEAD', mayBeCut);
  if (read === undefined) return false;
  expect(read.interim, 'interim answers').toBe(0);
  await model.check(request, read.answer);
  return true;
}

/** Holds a conversation to its end, and checks all that comes back. */
async function hold(
  wire: Wire,
  { requests, last, isPipelined, cuts }: Conversation,
): Promise<void> {
  const until = requests.findIndex(isFinal);
  const due = until < 0 ? requests : requests.slice(0, until + 1);
  const isOver = until >= 0;
  const tail = last === undefined ? SENTINEL : last.bytes;
  if (isPipelined) {
    const all = await Promise.all(due.map((request) => bytesOf(model, request)));
    if (!isOver) all.push(Buffer.from(tail, 'latin1'));
    await wire.send(Buffer.concat(all), cuts);
    if (last !== undefined && last.statuses === undefined && !isOver) wire.end();
    for (const request of due) {
      // Bytes that are no HTTP may end a connection at once, whatever is still under way.
      const mayBeCut = last !== undefined && !isOver;
      if (await checkNext(wire, request, mayBeCut)) continue;
      if (!mayBeCut) throw new Error('an answer is missing');
      return;
    }
  } else {
    for (const request of due) {
      await wire.send(await bytesOf(model, request), cuts);
      if (!(await checkNext(wire, request, false))) throw new Error('an answer is missing');
    }
    if (!isOver) await wire.send(Buffer.from(tail, 'latin1'), cuts);
    if (last !== undefined && last.statuses === undefined && !isOver) wire.end();
  }
  if (isOver) {
    expect(await wire.rest(), 'after the last answer').toHaveLength(0);
    return;
  }
  if (last === undefined) {
    const avatar = await model.expect('/avatars/5.png');
    const read = await wire.next(false);
    if (avatar.kind !== 'media' || read === undefined) throw new Error('no answer to the sentinel');
    expect(read.answer.body.equals(avatar.answer.body), 'an answer too many').toBe(true);
    expect(await wire.rest()).toHaveLength(0);
    return;
  }
  checkTail(await wire.rest(), last);
}

/** What may follow bytes that are no HTTP. */
function checkTail(
  received: Buffer,
  { bytes, statuses, fault }: NonNullable<Conversation['last']>,
): void {
  const answers = readAll(received, bytes.includes('HEAD'), statuses === undefined);
  if (answers === undefined) {
    throw new Error(`no answers: ${JSON.stringify(received.toString('latin1').slice(0, 200))}`);
  }
  for (const answer of answers) {
    model.checkAny(answer);
  }
  if (statuses === undefined) {
    expect(answers.length, 'answers to noise').toBeLessThanOrEqual(bytes.split('\n').length);
  } else {
    expect(answers.map(({ status }) => status).join(' '), fault).toMatch(statuses);
  }
}

/**
 * Answers up to the end of a connection; `undefined` where there is no way to read them all. Of what
 * looked like a HEAD, nobody can tell beforehand which answer has a body.
 */
function readAll(
  bytes: Buffer,
  hasHead: boolean,
  mayBeCut: boolean,
): readonly WireAnswer[] | undefined {
  if (bytes.length === 0) return [];
  for (const isHead of hasHead ? [false, true] : [false]) {
    const read = tryRead(bytes, isHead);
    const rest = read === undefined ? undefined : readAll(read.rest, hasHead, mayBeCut);
    if (read !== undefined && rest !== undefined) return [read.answer, ...rest];
  }
  // Cut off by the client's own farewell: what there is of it must be sound all the same.
  const text = bytes.toString('latin1');
  const isSound =
    /^HTTP\/1\.1 [1-4]/.test(text) && !text.includes(MARKER) && !text.includes('CANARY');
  return mayBeCut && isSound ? [] : undefined;
}

function tryRead(bytes: Buffer, isHead: boolean): ReturnType<typeof readAnswer> {
  try {
    return readAnswer(bytes, isHead);
  } catch {
    return undefined;
  }
}

describe('the whole surface over real sockets', () => {
  it(`answers ${RUNS} conversations as the contract says, and lives on`, async () => {
    await fc.assert(
      fc.asyncProperty(conversations(keys), async (conversation) => {
        const wire = await openWire(port);
        try {
          await hold(wire, conversation);
        } catch (error) {
          const sent = await Promise.all(conversation.requests.map((each) => bytesOf(model, each)));
          const tail = conversation.last?.bytes ?? SENTINEL;
          const script = scriptOf(port, Buffer.concat([...sent, Buffer.from(tail, 'latin1')]));
          const reason = error instanceof Error ? error.message : String(error);
          throw new Error(
            `${reason}\nOver one connection to a service on ${storage.root}:\n${script}`,
          );
        } finally {
          wire.close();
        }
      }),
      { numRuns: RUNS, seed: SEED, endOnFailure: false },
    );
    // It has met all that it is here for.
    for (const status of [200, 204, 206, 304, 400, 404, 405, 415, 416, 422]) {
      expect(model.statuses.get(status) ?? 0, `answers of ${status}`).toBeGreaterThan(0);
    }
  }, 3_600_000);

  it('has logged no error, and stands', async () => {
    const lines = service
      .output()
      .split('\n')
      .filter((line) => line.startsWith('{'));
    const levels = lines.map((line) => (JSON.parse(line) as { level: number }).level);
    expect(levels.length).toBeGreaterThan(0);
    expect(lines.filter((_, index) => (levels[index] ?? 0) >= 50)).toEqual([]);
    process.kill(service.pid, 0); // throws if it is gone
    expect((await fetch(`${service.origin}/avatars/0.png`)).status).toBe(200);
  });
});
