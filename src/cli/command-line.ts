import { parseArgs } from 'node:util';
import { ConfigError } from '../config/config.ts';
import { readRelease } from '../config/release.ts';
import { formatCauses } from '../contract/errors.ts';
import { blockCommand, purgeCommand, unblockCommand } from './admin-commands.ts';
import { checkCommand } from './check/check-command.ts';
import {
  type Command,
  type CommandEnd,
  CommandError,
  exitStatus,
  type Terminal,
  usageError,
  writeLine,
} from './command.ts';
import { healthCommand } from './health-command.ts';
import { metadataCommand } from './metadata-command.ts';
import { putCommand } from './put/put-command.ts';
import { renderCommand } from './render-command.ts';
import { signCommand } from './sign-command.ts';
import { stripCommand } from './strip/strip-command.ts';

/** `npm start` runs it after the build. */
const serveCommand: Command = {
  summary: 'serves media until it is stopped',
  operands: [],
  help: `
Listens on HOST and PORT (127.0.0.1:3000), with originals from STORAGE_DIR or
S3_BUCKET. Without settings it serves the sample originals, and prints links
to try.

Under a supervisor, start "node --initial-heap-size=128 dist/main.js" instead:
signals reach it directly, and it collects garbage less often. SIGTERM, SIGINT
and SIGHUP let running requests finish within SHUTDOWN_GRACE_MS.

Exit status: 0 stopped; 1 failed, or requests were cut off; 78 the
configuration is not valid.`,
  run: async () => {
    // Importing the service runs it, with its own signals and exit statuses.
    await import('../main.ts');
    return new Promise<never>(() => undefined);
  },
};

const commands: Readonly<Record<string, Command>> = {
  serve: serveCommand,
  block: blockCommand,
  check: checkCommand,
  health: healthCommand,
  metadata: metadataCommand,
  purge: purgeCommand,
  put: putCommand,
  render: renderCommand,
  sign: signCommand,
  strip: stripCommand,
  unblock: unblockCommand,
};

const OPTIONS = `Options:
  --help     shows help for all commands, or for one
  --version  prints the version`;

/**
 * Runs a command line; returns how it ended, after errors were written to `stderr`.
 *
 * @param args arguments after the program's name
 * @throws errors that are bugs
 */
export async function runCommandLine(
  args: readonly string[],
  terminal: Terminal,
): Promise<CommandEnd> {
  let stopped: string | undefined;
  try {
    const parsed = parseCommandLine(args);
    if (typeof parsed === 'string') {
      writeLine(terminal.stdout, parsed);
      return exitStatus.ok;
    }
    stopped = parsed.command.stopped;
    return await parsed.command.run(parsed.operands, terminal, parsed.options);
  } catch (error) {
    if (terminal.signal.aborted && !(error instanceof CommandError)) {
      writeLine(terminal.stderr, ['darkroom: stopped', stopped].filter(Boolean).join('; '));
      return 'stopped';
    }
    if (error instanceof ConfigError) {
      writeLine(terminal.stderr, `darkroom: the configuration is not valid:\n${error.message}`);
      return exitStatus.configuration;
    }
    if (!(error instanceof CommandError)) throw error;
    writeLine(terminal.stderr, `darkroom: ${error.message}${formatCauses(error.cause)}`);
    return error.exitStatus;
  }
}

/** Returns a command to run, or a text to show. @throws CommandError */
function parseCommandLine(args: readonly string[]) {
  const { values, positionals } = parseOptions(args);
  const [name, ...operands] = positionals;
  if (values.version === true) return `darkroom ${readRelease().version}`;
  if (name === undefined) {
    if (values.help === true) return formatHelp();
    throw refusal('missing command');
  }
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (command === undefined) throw refusal(`unknown command "${name}"`);
  if (values.help === true) return formatCommandHelp(name, command);
  const isRepeated = command.operands.at(-1)?.endsWith('…') === true;
  const missing = isRepeated ? [] : command.operands.slice(operands.length);
  if (missing.length > 0) throw refusal(`${name} needs ${missing.join(' and ')}`, name);
  const extra = operands[command.operands.length];
  if (extra !== undefined && !isRepeated) throw refusal(`unexpected argument "${extra}"`, name);
  const { help: _, version: __, ...options } = values;
  const known = Object.keys(command.options ?? {});
  const unknown = Object.keys(options).find((option) => !known.includes(option));
  if (unknown !== undefined) throw refusal(`${name} has no option --${unknown}`, name);
  return { command, operands, options };
}

function parseOptions(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        help: { type: 'boolean', short: 'h' },
        version: { type: 'boolean' },
        platform: { type: 'boolean' },
        'dry-run': { type: 'boolean' },
        prefix: { type: 'string' },
      },
    });
  } catch (error) {
    // Node's messages address programmers, and explain `--` at length.
    const option = args.find(
      (arg) =>
        /^-./.test(arg) &&
        !/^(-h|--help|--version|--platform|--dry-run|--prefix(=.*)?)$/s.test(arg),
    );
    if (option === undefined && args.includes('--prefix')) throw refusal('--prefix needs a value');
    if (option === undefined) throw error;
    throw refusal(`unknown option ${option}`);
  }
}

function refusal(what: string, command = ''): CommandError {
  return usageError(`${what}; see darkroom ${command === '' ? '' : `${command} `}--help`);
}

function formatHelp(): string {
  const usages = Object.entries(commands).map(
    ([name, { operands, summary }]) => `  ${[name, ...operands].join(' ').padEnd(28)}${summary}`,
  );
  return `Darkroom: media CDN origin and image transformation service.

Usage: darkroom COMMAND

Commands:
${usages.join('\n')}

${OPTIONS}

Commands read the environment variables of the service, such as STORAGE_DIR or
S3_BUCKET; docs/configuration.md lists them.

Exit status: 0 done; 1 failed, or a check failed; 64 unknown command; 78
the configuration is not valid. A command that a signal stops cleans up, and
then ends by that signal: 130 for SIGINT (Ctrl-C), 143 for SIGTERM.`;
}

function formatCommandHelp(name: string, command: Command): string {
  const { operands, options = {}, summary, help } = command;
  const usages = Object.entries(options).map(([option, value]) => `[--${option} ${value}`.trim());
  return `darkroom ${name}: ${summary}

Usage: darkroom ${[name, ...usages.map((usage) => `${usage}]`), ...operands].join(' ')}

${help.trim()}`;
}
