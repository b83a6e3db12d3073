import { createHash, createHmac } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

export const AWS_KEYS = {
  accessKeyId: 'AKIDEXAMPLEOFTHETESTS',
  secretAccessKey: 'a-secret-key-of-the-tests-that-signs',
} as const;

/** Whether a request for CloudFront is signed with these keys (AWS Signature Version 4, by its document). */
export function isSigned({
  method,
  path,
  headers,
  body,
}: {
  readonly method: string | undefined;
  readonly path: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}): boolean {
  const form =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/us-east-1\/cloudfront\/aws4_request, SignedHeaders=([^,]+), Signature=(\w{64})$/;
  const [, keyId, day = '', names = '', signature] = form.exec(headers.authorization ?? '') ?? [];
  const time = String(headers['x-amz-date']);
  if (keyId !== AWS_KEYS.accessKeyId || !time.startsWith(day)) return false;
  const signed = names.split(';').map((name) => `${name}:${String(headers[name]).trim()}\n`);
  const canonical = [method, path, '', signed.join(''), names, sha256(body)].join('\n');
  const scope = `${day}/us-east-1/cloudfront/aws4_request`;
  const message = ['AWS4-HMAC-SHA256', time, scope, sha256(canonical)].join('\n');
  const parts = [day, 'us-east-1', 'cloudfront', 'aws4_request'];
  const key = parts.reduce(hmac, Buffer.from(`AWS4${AWS_KEYS.secretAccessKey}`));
  return hmac(key, message).toString('hex') === signature;
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function hmac(key: Uint8Array, text: string): Buffer<ArrayBuffer> {
  return Buffer.from(createHmac('sha256', key).update(text).digest());
}
