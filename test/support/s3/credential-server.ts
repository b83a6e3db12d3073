import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { onTestFinished, vi } from 'vitest';
import { listenUntilEnd } from '../at-end.ts';
import { useTemporaryDirectory } from '../temporary-directory.ts';
import { LOCAL_CREDENTIALS } from './local-s3.ts';

/** Endpoints of credentials: of containers (ECS, EKS Pod Identity), of STS (IRSA), and of EC2 instances. */
export type CredentialSource = 'container' | 'web identity' | 'instance';

/** Failure of the endpoint: no response, or a truncated body. */
export type Silence = 'no response' | 'half a body';

const { AWS_ACCESS_KEY_ID: keyId, AWS_SECRET_ACCESS_KEY: secret } = LOCAL_CREDENTIALS;

const TOKEN = 'token-of-a-session';

/** Starts an endpoint of credentials until the end of the test, and points the environment only at it. */
export async function useCredentialServer(source: CredentialSource, lifetimeMs = 3_600_000) {
  let silence: { readonly kind: Silence; times: number } | undefined;
  let requests = 0;
  let open = 0;
  const respond = (request: IncomingMessage, response: ServerResponse): void => {
    requests += 1;
    open += 1;
    response.once('close', () => {
      open -= 1;
    });
    const body = bodies[source](request, new Date(Date.now() + lifetimeMs).toISOString());
    const isSilent = silence !== undefined && silence.times > 0;
    if (silence !== undefined) silence.times -= 1;
    if (!isSilent) return void response.end(body);
    if (silence?.kind === 'no response') return;
    response.setHeader('Content-Length', body.length);
    response.write(body.slice(0, body.length / 2));
  };
  const url = `http://127.0.0.1:${await listenUntilEnd(createServer(respond))}`;
  const directory = await useTemporaryDirectory();
  await directory.put('token', 'a-web-identity-token');
  const settings: Readonly<Record<CredentialSource, Readonly<Record<string, string>>>> = {
    container: { AWS_CONTAINER_CREDENTIALS_FULL_URI: `${url}/credentials` },
    'web identity': {
      AWS_WEB_IDENTITY_TOKEN_FILE: `${directory.path}/token`,
      AWS_ROLE_ARN: 'arn:aws:iam::123456789012:role/darkroom',
      AWS_ENDPOINT_URL_STS: url,
    },
    instance: { AWS_EC2_METADATA_SERVICE_ENDPOINT: url },
  };
  const isolated = { AWS_ACCESS_KEY_ID: '', AWS_SECRET_ACCESS_KEY: '', AWS_SESSION_TOKEN: '' };
  for (const [name, value] of Object.entries({ ...isolated, ...settings[source] })) {
    vi.stubEnv(name, value);
  }
  onTestFinished(() => void vi.unstubAllEnvs());
  return {
    /** Fails the next requests, by default until `speak` is called. */
    silence: (kind: Silence, times = Number.POSITIVE_INFINITY) => {
      silence = { kind, times };
    },
    speak: () => {
      silence = undefined;
    },
    requests: () => requests,
    /** Requests without a complete response whose client still waits. */
    open: () => open,
  };
}

const bodies: Readonly<
  Record<CredentialSource, (request: IncomingMessage, expiration: string) => string>
> = {
  container: (_, Expiration) =>
    JSON.stringify({ AccessKeyId: keyId, SecretAccessKey: secret, Token: TOKEN, Expiration }),
  'web identity': (_, expiration) =>
    `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>${keyId}</AccessKeyId><SecretAccessKey>${secret}</SecretAccessKey><SessionToken>${TOKEN}</SessionToken><Expiration>${expiration}</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`,
  instance: ({ method, url }, Expiration) => {
    if (method === 'PUT') return 'token';
    if (url?.endsWith('/security-credentials/') === true) return 'darkroom';
    const keys = { AccessKeyId: keyId, SecretAccessKey: secret, Token: TOKEN, Expiration };
    return JSON.stringify({ Code: 'Success', ...keys });
  },
};
