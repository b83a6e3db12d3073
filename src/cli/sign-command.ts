import { type Config, readConfig } from '../config/config.ts';
import { checkExternalUrl } from '../contract/external-url.ts';
import { originKeyOf, parsePath } from '../contract/media-path.ts';
import { signAttachment } from '../contract/signing/attachment-signature.ts';
import { formatExternalPath } from '../contract/signing/external-path.ts';
import { AddressGuard } from '../storage/remote/guard.ts';
import { type Command, CommandError, exitStatus, usageError, writeLine } from './command.ts';

export const signCommand: Command = {
  summary: 'prints the signed path of an external URL or an attachment',
  operands: ['URL'],
  help: `
For a URL of another site: prints the path at which Darkroom serves its media,
signed with the first key of EXTERNAL_SIGNING_KEYS. You may append parameters:
?width=550&format=webp. Nothing is fetched.

For the key of an attachment, attachments/1/2/name.png, or for its path, which
begins with a slash and is percent-encoded: prints the path with a query that
is valid for 12 to 24 hours, signed with the first key of
ATTACHMENT_SIGNING_KEYS. You may append parameters: &width=550&format=webp.

Exit status: 0 done; 1 no key is set, or the service would not fetch that URL;
64 URL is neither; 78 settings are not valid.`,
  run: async ([what = ''], { environment, stdout }) => {
    const config = readConfig(environment);
    const sign = /^\/?attachments\//.test(what) ? signAttachmentOf : signUrl;
    writeLine(stdout, sign(what, config));
    return exitStatus.ok;
  },
};

/** @throws CommandError */
function signAttachmentOf(what: string, { attachments: { signing } }: Config): string {
  if (signing === undefined) throw noKeyError('ATTACHMENT_SIGNING_KEYS');
  const path = what.startsWith('/') ? parsePath(what) : undefined;
  const key = path?.kind === 'valid' ? originKeyOf(path.path) : what;
  const signed = key && signAttachment(key, signing, Date.now());
  if (!signed) throw usageError(`"${what}" is neither the key nor the path of an attachment`);
  return signed;
}

/** @throws CommandError */
function signUrl(url: string, { external }: Config): string {
  if (external === undefined) throw noKeyError('EXTERNAL_SIGNING_KEYS');
  const rejection = findRejection(url, external);
  if (rejection !== undefined) {
    throw new CommandError(`the service would not fetch this URL: ${rejection}`, {
      exitStatus: rejection === 'no url' ? exitStatus.usage : exitStatus.failure,
    });
  }
  return formatExternalPath(url, external.keys);
}

function noKeyError(variable: string): CommandError {
  return new CommandError(`no key is set; see ${variable} in docs/configuration.md`);
}

/** Returns why the service would not fetch a URL, in a few words; does not resolve its host. */
function findRejection(url: string, rules: NonNullable<Config['external']>): string | undefined {
  const target = checkExternalUrl(url, rules);
  if (target.kind !== 'fetchable') return target.kind === 'local' ? undefined : target.reason;
  return target.isAddress ? new AddressGuard(rules).findRejection(target.host) : undefined;
}
