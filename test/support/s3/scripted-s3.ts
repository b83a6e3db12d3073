import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { listenUntilEnd } from '../at-end.ts';

/** A request that came to a scripted server. */
interface ScriptedRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

/** What it responds: the rest is up to the response. */
export type RespondScript = (request: ScriptedRequest, response: ServerResponse) => void;

/**
 * Starts a server that says what a test wants an S3 server to say, and checks nothing; until the end of the test, or of
 * the file's tests.
 */
export async function useScriptedS3(answer: RespondScript) {
  const requests: ScriptedRequest[] = [];
  const server = createServer(async (incoming, response) => {
    const { method = '', url = '', headers } = incoming;
    const body = await buffer(incoming);
    const request = { method, url: new URL(url, 'http://scripted'), headers, body };
    requests.push(request);
    answer(request, response);
  });
  return { endpoint: `http://127.0.0.1:${await listenUntilEnd(server)}`, requests };
}

/** Responds with a page of a list, as S3 writes it; `next` where another page follows. */
export function respondWithPage(
  response: ServerResponse,
  keys: readonly string[],
  next?: string,
): void {
  const contents = keys.map((key) => `<Contents><Key>${key}</Key><Size>5</Size></Contents>`);
  const more = next && `<NextContinuationToken>${next}</NextContinuationToken>`;
  response.writeHead(200, { 'Content-Type': 'application/xml' });
  response.end(
    `<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>${next !== undefined}</IsTruncated>${more ?? ''}${contents.join('')}</ListBucketResult>`,
  );
}

/** Responds with an error of S3. */
export function respondWithError(response: ServerResponse, status: number, code: string): void {
  response.writeHead(status, { 'Content-Type': 'application/xml' });
  response.end(`<Error><Code>${code}</Code><Message>No.</Message></Error>`);
}
