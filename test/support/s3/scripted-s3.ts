import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { listenUntilEnd } from '../at-end.ts';

interface ScriptedRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

export type RespondScript = (request: ScriptedRequest, response: ServerResponse) => void;

/** Starts a server with scripted responses, which checks nothing, until the end of the test or file. */
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

/** Responds with a page of an S3 list. Omit `next` for the last page. */
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

export function respondWithError(response: ServerResponse, status: number, code: string): void {
  response.writeHead(status, { 'Content-Type': 'application/xml' });
  response.end(`<Error><Code>${code}</Code><Message>No.</Message></Error>`);
}
