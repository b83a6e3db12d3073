import { type Config, readConfig } from '../config/config.ts';
import { formatExternalPath } from '../contract/external-path.ts';
import { examineExternalUrl } from '../contract/external-url.ts';
import { AddressGuard } from '../storage/remote/address-guard.ts';
import { type Command, CommandFault, exitStatus, writeLine } from './command.ts';

/** Signs what is served to those alone who have a signature. */
export const signCommand: Command = {
  summary: 'prints the signed path of an external URL',
  operands: ['URL'],
  help: `
Prints the path below which Darkroom shows what is at URL, signed with the
first key of EXTERNAL_SIGNING_KEYS. Parameters may be added behind it:
?width=550&format=webp. Nothing is fetched.

Exit status: 0 done; 1 no key is set, or nothing would be fetched from there;
64 URL is none; 78 settings are not valid.`,
  run: async ([url = ''], { environment, stdout }) => {
    const { external } = readConfig(environment);
    if (external === undefined) {
      throw new CommandFault('no key is set; see EXTERNAL_SIGNING_KEYS in docs/configuration.md');
    }
    const fault = findFault(url, external);
    if (fault !== undefined) {
      throw new CommandFault(`nothing would be fetched from there: ${fault}`, {
        exitStatus: fault === 'no url' ? exitStatus.usage : exitStatus.fault,
      });
    }
    writeLine(stdout, formatExternalPath(url, external.keys));
    return exitStatus.ok;
  },
};

/** Why nothing would be fetched from a URL, in a few words; what its name resolves to is not looked at. */
function findFault(url: string, rules: NonNullable<Config['external']>): string | undefined {
  const target = examineExternalUrl(url, rules);
  if (target.kind === 'refused') return target.reason;
  return target.isAddress ? new AddressGuard(rules).findFault(target.host) : undefined;
}
