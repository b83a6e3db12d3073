/** A response as received on the wire. */
export interface WireResponse {
  readonly status: number;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/**
 * Reads the first response in `bytes`, and returns it with the bytes after it; `undefined` while it is incomplete.
 *
 * @param isHead whether the request was a HEAD, so no body follows
 * @throws Error for anything that is not exactly HTTP/1.1, and for an interim response (1xx)
 */
export function readResponse(
  bytes: Buffer,
  isHead: boolean,
): { readonly response: WireResponse; readonly rest: Buffer } | undefined {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const { status, headers } = readHead(bytes.subarray(0, end));
  const afterHead = bytes.subarray(end + 4);
  const length = lengthOf(status, headers, isHead, afterHead);
  if (length === undefined || afterHead.length < length) return undefined;
  const body = afterHead.subarray(0, length);
  return { response: { status, headers, body }, rest: afterHead.subarray(length) };
}

/** Reads all responses of a connection without HEAD requests. Throws if one is truncated, or not exactly HTTP/1.1. */
export function readResponses(bytes: Buffer): readonly WireResponse[] {
  if (bytes.length === 0) return [];
  const read = readResponse(bytes, false);
  if (read === undefined) {
    throw new Error(`truncated response: ${JSON.stringify(bytes.toString('latin1', 0, 80))}`);
  }
  return [read.response, ...readResponses(read.rest)];
}

/** @throws Error for anything that is not exactly HTTP/1.1 */
export function readHead(head: Buffer): Pick<WireResponse, 'status' | 'headers'> {
  const [statusLine = '', ...lines] = head.toString('latin1').split('\r\n');
  const status = /^HTTP\/1\.1 ([1-5]\d\d) [A-Za-z' -]*$/.exec(statusLine)?.[1];
  if (status === undefined) throw new Error(`invalid status line: ${JSON.stringify(statusLine)}`);
  const headers = new Map<string, string>();
  for (const line of lines) {
    const [, name, value] = /^([A-Za-z0-9-]+): ([ -~]+)$/.exec(line) ?? [];
    if (name === undefined || value === undefined)
      throw new Error(`invalid header: ${JSON.stringify(line)}`);
    if (headers.has(name.toLowerCase())) throw new Error(`duplicate header: ${line}`);
    headers.set(name.toLowerCase(), value);
  }
  return { status: Number(status), headers: Object.fromEntries(headers) };
}

function lengthOf(
  status: number,
  headers: WireResponse['headers'],
  isHead: boolean,
  body: Buffer,
): number | undefined {
  const length = headers['content-length'];
  const coding = headers['transfer-encoding'];
  if (length !== undefined && !/^(?:0|[1-9]\d*)$/.test(length))
    throw new Error(`length: ${length}`);
  if (isHead || status === 204 || status === 304) {
    if (status === 204 && (length ?? coding) !== undefined) throw new Error('a 204 with a length');
    return 0;
  }
  if (coding === undefined) {
    if (length === undefined) throw new Error(`a response ${status} without a length`);
    return Number(length);
  }
  // The service never sends chunks, but Node.js declares its own empty responses as chunked.
  if (coding !== 'chunked' || length !== undefined) throw new Error(`coding: ${coding}, ${length}`);
  if (body.length < 5) return undefined;
  if (body.subarray(0, 5).toString('latin1') !== '0\r\n\r\n') throw new Error('a chunked response');
  return 5;
}
