import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readResponse, type WireResponse } from '../support/http/wire-response.ts';
import { patient } from '../support/patient.ts';
import { type ServiceProcess, useService } from '../support/processes/service-process.ts';
import { atScale } from '../support/test-scale.ts';
import { weighted } from './contract-requests.ts';
import { KEYS } from './signed-oracle.ts';
import {
  externalPaths,
  signedAttachments,
  signedExamples,
  uploadKeys,
  uploads,
} from './signed-requests.ts';
import { bytesOf, SurfaceModel } from './surface-model.ts';
import {
  type Conversation,
  conversations,
  headerConversations,
  inOne,
  isUpload,
  MARKER,
  malformedConversations,
  targets,
  type ValidRequest,
} from './surface-requests.ts';
import { startSurfaceSite } from './surface-site.ts';
import { createSurfaceStorage, type SurfaceStorage } from './surface-storage.ts';
import { openWire, scriptOf, type Wire } from './wire.ts';

/** Last request of a conversation: an extra response to an earlier one would arrive instead of its own. */
const SENTINEL = 'GET /avatars/5.png HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';

/** Small, so that uploads can exceed it. */
const MAX_UPLOAD_BYTES = 20_000;

/** Settings of both services: responses remain cached. */
const settingsOf = ({ root }: SurfaceStorage) => {
  return { STORAGE_DIR: root, ...patient, CACHE_REVALIDATE_SECONDS: '31536000' };
};
const portOf = ({ origin }: ServiceProcess): number => Number(new URL(origin).port);

async function openPlainStage() {
  const storage = await createSurfaceStorage();
  const { root, originals } = storage;
  const service = await useService(settingsOf(storage));
  const port = portOf(service);
  const drawn = conversations(targets([...originals.keys()]));
  const model = new SurfaceModel({ port, originals });
  // Malformed messages and conditions do not depend on signatures.
  const examples = [...malformedConversations, ...headerConversations];
  return { service, port, model, conversations: drawn, storageRoot: root, examples };
}

/** A service with enforced attachment signatures, external media and uploads. */
async function openSignedStage() {
  const storage = await createSurfaceStorage();
  const { root, originals } = storage;
  const site = await startSurfaceSite(originals);
  const service = await useService({
    ...settingsOf(storage),
    ...site.settings,
    ...{ CDN_CACHE_CONTROL: 'true', RELAY_SIGNING_KEYS: KEYS.join() },
    RELAY_MAX_BYTES: String(MAX_UPLOAD_BYTES),
  });
  const port = portOf(service);
  const own = [...originals.keys()];
  const attachments = own.filter((key) => key.startsWith('attachments/'));
  const pictures = ['attachments/1/2/photo.png', 'attachments/1/2/wave.gif', 'banners/2/b'].flatMap(
    (key) => originals.get(key)?.bytes ?? [],
  );
  const drawn = conversations(
    weighted(
      [2, targets(own)],
      [3, signedAttachments([...attachments, ...uploadKeys.slice(1, 2)])],
      [4, externalPaths(site.origin, [...site.originals.keys()])],
      [1, targets(uploadKeys)],
    ),
    uploads(pictures, MAX_UPLOAD_BYTES),
  );
  const model = new SurfaceModel({
    port,
    originals: new Map([...originals, ...site.originals]),
    siteOrigin: site.origin,
    maxUploadBytes: MAX_UPLOAD_BYTES,
  });
  const examples = signedExamples('attachments/1/2/photo.png', MAX_UPLOAD_BYTES).map(inOne);
  return { service, port, model, conversations: drawn, storageRoot: root, examples };
}

/** Whether the service closes the connection after this request (RFC 9112 §9.3). */
function isFinal({ version, headers }: ValidRequest): boolean {
  const options = headers.flatMap(([name, value]) =>
    name.toLowerCase() === 'connection' ? value.toLowerCase().split(/[ ,]+/) : [],
  );
  if (version === '1.0') return true; // never generated with keep-alive
  // Without `100 Continue`, the client may still send its body; after an upgrade request, it may send another protocol.
  const isWaiting = headers.some(([name]) => ['expect', 'upgrade'].includes(name.toLowerCase()));
  return options.includes('close') || isWaiting;
}

/** Sends a conversation, and checks all responses. */
async function converse(
  model: SurfaceModel,
  wire: Wire,
  { requests, last, isPipelined, cuts }: Conversation,
): Promise<void> {
  const until = requests.findIndex(isFinal);
  let isOver = until >= 0;
  const due = isOver ? requests.slice(0, until + 1) : requests;
  const sendTail = async (...before: readonly Buffer[]): Promise<void> => {
    const tail = isOver ? [] : [Buffer.from(last?.bytes ?? SENTINEL, 'latin1')];
    await wire.send(Buffer.concat([...before, ...tail]), cuts);
    if (!isOver && last !== undefined && last.statuses === undefined) wire.end();
  };
  // Invalid HTTP may end a connection at once, also during other responses.
  const mayBeCut = isPipelined && last !== undefined && !isOver;
  if (isPipelined) {
    await sendTail(...(await Promise.all(due.map((request) => bytesOf(model, request)))));
  }
  for (const request of due) {
    if (!isPipelined) await wire.send(await bytesOf(model, request), cuts);
    const response = await wire.next(request.method === 'HEAD', mayBeCut);
    if (response === undefined && mayBeCut) return;
    if (response === undefined) throw new Error('a response is missing');
    await model.check(request, response);
    // The rest of a rejected upload is not read.
    if (isUpload(request) && response.headers.connection === 'close') {
      isOver = true;
      break;
    }
  }
  if (!isPipelined) await sendTail();
  if (isOver) {
    expect(await wire.rest(), 'after the last response').toHaveLength(0);
  } else if (last === undefined) {
    const avatar = await model.expect('/avatars/5.png');
    const response = await wire.next(false);
    if (avatar.kind !== 'media' || response === undefined) throw new Error('no sentinel');
    expect(response.body.equals(avatar.response.body), 'a response too many').toBe(true);
    expect(await wire.rest()).toHaveLength(0);
  } else {
    checkTail(model, await wire.rest(), last);
  }
}

/** Checks the end of a connection after invalid HTTP. */
function checkTail(
  model: SurfaceModel,
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

/** Reads all responses of a connection; `undefined` if it is unknown which of them are for a HEAD and have no body. */
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
  // Truncated because the client closed the connection, but the received bytes must be valid.
  const text = bytes.toString('latin1');
  const isSound =
    /^HTTP\/1\.1 [1-4]/.test(text) && !text.includes(MARKER) && !text.includes('CANARY');
  return mayBeCut && isSound ? [] : undefined;
}

function tryRead(...response: Parameters<typeof readResponse>) {
  try {
    return readResponse(...response);
  } catch {
    return undefined;
  }
}

const STATUSES = [200, 204, 206, 304, 400, 404, 405, 412, 415, 416, 422];
const stages = {
  'without signatures': [
    openPlainStage,
    atScale(350, 5_000),
    STATUSES,
    /^(?:get|head)(?!External)/,
  ],
  'with signed attachments, external media and uploads': [
    openSignedStage,
    atScale(150, 5_000),
    [...STATUSES, 401, 403, 409, 411, 413, 502],
    /External|^getAttachment|Original$/,
  ],
} as const;

test.each(Object.entries(stages))(
  'all responses over real sockets match the contract, in conversations %s',
  async (_, [open, runs, statuses, operations]) => {
    const { service, port, model, conversations, storageRoot, ...own } = await open();
    const examples = own.examples.map((each): [Conversation] => [each]);
    await fc.assert(
      fc.asyncProperty(conversations, async (conversation) => {
        const wire = await openWire(port);
        try {
          await converse(model, wire, conversation);
        } catch (error) {
          const sent = await Promise.all(conversation.requests.map((each) => bytesOf(model, each)));
          const tail = conversation.last?.bytes ?? SENTINEL;
          const script = scriptOf(port, Buffer.concat([...sent, Buffer.from(tail, 'latin1')]));
          throw new Error(
            `${error}\nOver one connection to a service on ${storageRoot}:\n${script}`,
          );
        } finally {
          wire.close();
        }
      }),
      { numRuns: runs + examples.length, endOnFailure: false, examples },
    );
    // All statuses and operations occurred.
    for (const status of statuses) {
      expect(model.statuses.get(status) ?? 0, `responses of ${status}`).toBeGreaterThan(0);
    }
    expect(model.document.unmet.filter((name) => operations.test(name))).toEqual([]);
    // The service logged no error, and still runs.
    const lines = service.output().match(/^\{.*$/gm) ?? [];
    expect(lines.length).toBeGreaterThan(0);
    expect(lines.filter((line) => JSON.parse(line).level >= 50)).toEqual([]);
    expect((await fetch(`${service.origin}/avatars/0.png`)).status).toBe(200);
  },
  600_000,
);
