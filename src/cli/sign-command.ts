import { readConfig } from '../config/config.ts';
import { formatExternalPath } from '../contract/external-path.ts';
import { examineExternalUrl } from '../contract/external-url.ts';
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
    const target = examineExternalUrl(url, external);
    if (target.kind === 'refused') {
      const status = target.reason === 'no url' ? exitStatus.usage : exitStatus.fault;
      throw new CommandFault(`nothing would be fetched from there: ${target.reason}`, {
        exitStatus: status,
      });
    }
    writeLine(stdout, formatExternalPath(url, external.keys));
    return exitStatus.ok;
  },
};
