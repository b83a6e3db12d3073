import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { ReaderPace } from '../../../src/http/edge/reader-pace.ts';

const MIN_BYTES = 1_000;

/** A response, as far as its pace goes: what a client leaves waiting, and how much it has asked for. */
function createResponse(state: {
  socket?: object | null;
  writableLength?: number;
  writableEnded?: boolean;
}) {
  const response = Object.assign(new EventEmitter(), {
    socket: {},
    writableLength: 1,
    writableEnded: false,
    ...state,
  });
  const pace = new ReaderPace(response as unknown as ServerResponse, MIN_BYTES);
  const body = { passedBytes: 0 };
  response.emit('pipe', body);
  return { response, pace, body };
}

describe('the pace of a client', () => {
  it('is a standstill from the first look at which something waits for it', () => {
    const { pace } = createResponse({});
    expect([100, 150, 400].map((nowMs) => pace.standstillMs(nowMs))).toEqual([0, 50, 300]);
  });

  it('is one still if it takes less than the least', () => {
    const { pace, body } = createResponse({});
    pace.standstillMs(0);
    body.passedBytes = MIN_BYTES - 1;
    expect(pace.standstillMs(100)).toBe(100);
    body.passedBytes = MIN_BYTES;
    expect(pace.standstillMs(200)).toBe(0);
    body.passedBytes = 2 * MIN_BYTES - 1;
    expect(pace.standstillMs(300)).toBe(100);
  });

  it('is one if the end of a response does not get out, though all of its body has', () => {
    const { pace } = createResponse({ writableLength: 0, writableEnded: true });
    expect([0, 100].map((nowMs) => pace.standstillMs(nowMs))).toEqual([0, 100]);
  });

  it.each([
    ['nothing waits for it', { writableLength: 0 }],
    ['another response is before its own', { socket: null }],
  ])('is none if %s', (_, state) => {
    const { pace } = createResponse(state);
    expect([0, 100].map((nowMs) => pace.standstillMs(nowMs))).toEqual([0, 0]);
  });

  it('is counted anew after nothing has waited for it', () => {
    const { response, pace } = createResponse({});
    pace.standstillMs(0);
    response.writableLength = 0;
    pace.standstillMs(100);
    response.writableLength = 1;
    expect([200, 250].map((nowMs) => pace.standstillMs(nowMs))).toEqual([0, 50]);
  });
});
