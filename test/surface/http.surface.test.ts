import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readResponse, type WireResponse } from '../support/http/wire-response.ts';
import { patient } from '../support/patient.ts';
import { type ServiceProcess, startService } from '../support/processes/service-process.ts';
import { bytesOf, SurfaceModel } from './surface-model.ts';
import { type Conversation, conversations, MARKER, type SoundRequest } from './surface-requests.ts';
import { createSurfaceStorage, type SurfaceStorage } from './surface-storage.ts';
import { openWire, scriptOf, type Wire } from './wire.ts';

/** How many conversations are held; a nightly run may set more. */
const RUNS = Number(process.env.SURFACE_RUNS ?? '5000');
/** Fixed, so that each run holds the same conversations; another seed is another walk. */
const SEED = Number(process.env.SURFACE_SEED ?? '20240514');

/** Asked for at the end of a conversation: a response too many before would come in its place. */
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

/** Whether the service closes the connection after this request (RFC 9112 §9.3). */
function isFinal({ version, headers }: SoundRequest): boolean {
  const options = headers.flatMap(([name, value]) =>
    name.toLowerCase() === 'connection' ? value.toLowerCase().split(/[ ,]+/) : [],
  );
  if (version === '1.0') return true; // none of them is drawn with keep-alive
  // A client that expects `100 Continue`, and gets a final response, may or may not send its body; one
  // that asks for another protocol may begin to speak it.
  const isWaiting = headers.some(([name]) => ['expect', 'upgrade'].includes(name.toLowerCase()));
  return options.includes('close') || isWaiting;
}

/** Reads and checks the response due for a request; false where the service has hung up instead. */
async function checkNext(wire: Wire, request: SoundRequest, mayBeCut: boolean): Promise<boolean> {
  const response = await wire.next(request.method === 'HEAD', mayBeCut);
  if (response === undefined) return false;
  await model.check(request, response);
  return true;
}

/** Holds a conversation to its end, and checks all that comes back. */
async function hold(
  wire: Wire,
  { requests, last, isPipelined, cuts }: Conversation,
): Promise<void> {
  const until = requests.findIndex(isFinal);
  const isOver = until >= 0;
  const due = isOver ? requests.slice(0, until + 1) : requests;
  const tail = isOver ? [] : [Buffer.from(last?.bytes ?? SENTINEL, 'latin1')];
  const sendTail = async (...bytes: readonly Buffer[]): Promise<void> => {
    await wire.send(Buffer.concat(bytes), cuts);
    if (!isOver && last !== undefined && last.statuses === undefined) wire.end();
  };
  const bytes = await Promise.all(due.map((request) => bytesOf(model, request)));
  // Bytes that are no HTTP may end a connection at once, whatever is still under way.
  const mayBeCut = isPipelined && last !== undefined && !isOver;
  if (isPipelined) await sendTail(...bytes, ...tail);
  for (const [index, request] of due.entries()) {
    if (!isPipelined) await wire.send(bytes[index] ?? Buffer.alloc(0), cuts);
    if (await checkNext(wire, request, mayBeCut)) continue;
    if (!mayBeCut) throw new Error('a response is missing');
    return;
  }
  if (!isPipelined) await sendTail(...tail);
  if (isOver) {
    expect(await wire.rest(), 'after the last response').toHaveLength(0);
  } else if (last === undefined) {
    const avatar = await model.expect('/avatars/5.png');
    const response = await wire.next(false);
    if (avatar.kind !== 'media' || response === undefined) throw new Error('no sentinel');
    expect(response.body.equals(avatar.response.body), 'a response too many').toBe(true);
    expect(await wire.rest()).toHaveLength(0);
  } else {
    checkTail(await wire.rest(), last);
  }
}

/** What may follow bytes that are no HTTP. */
function checkTail(
  received: Buffer,
  { bytes, statuses, fault }: NonNullable<Conversation['last']>,
): void {
  const responses = readAll(received, bytes.includes('HEAD'), statuses === undefined);
  if (responses === undefined) {
    throw new Error(`no responses: ${JSON.stringify(received.toString('latin1').slice(0, 200))}`);
  }
  for (const response of responses) {
    model.checkAny(response);
  }
  if (statuses === undefined) {
    expect(responses.length, 'responses to noise').toBeLessThanOrEqual(bytes.split('\n').length);
  } else {
    expect(responses.map(({ status }) => status).join(' '), fault).toMatch(statuses);
  }
}

/**
 * Responses up to the end of a connection; `undefined` where there is no way to read them all. Of what
 * looked like a HEAD, it cannot be told beforehand which response has a body.
 */
function readAll(
  bytes: Buffer,
  hasHead: boolean,
  mayBeCut: boolean,
): readonly WireResponse[] | undefined {
  if (bytes.length === 0) return [];
  for (const isHead of hasHead ? [false, true] : [false]) {
    const read = tryRead(bytes, isHead);
    const rest = read === undefined ? undefined : readAll(read.rest, hasHead, mayBeCut);
    if (read !== undefined && rest !== undefined) return [read.response, ...rest];
  }
  // Cut off since the client has ended the connection: what there is of it must be sound all the same.
  const text = bytes.toString('latin1');
  const isSound =
    /^HTTP\/1\.1 [1-4]/.test(text) && !text.includes(MARKER) && !text.includes('CANARY');
  return mayBeCut && isSound ? [] : undefined;
}

function tryRead(bytes: Buffer, isHead: boolean): ReturnType<typeof readResponse> {
  try {
    return readResponse(bytes, isHead);
  } catch {
    return undefined;
  }
}

describe('the whole surface over real sockets', () => {
  it(`holds ${RUNS} conversations as the contract says, and lives on`, async () => {
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
      expect(model.statuses.get(status) ?? 0, `responses of ${status}`).toBeGreaterThan(0);
    }
  }, 3_600_000);

  it('has logged no error, and stands', async () => {
    const lines = service.output().match(/^\{.*$/gm) ?? [];
    expect(lines.length).toBeGreaterThan(0);
    expect(lines.filter((line) => JSON.parse(line).level >= 50)).toEqual([]);
    process.kill(service.pid, 0); // throws if it is gone
    expect((await fetch(`${service.origin}/avatars/0.png`)).status).toBe(200);
  });
});
