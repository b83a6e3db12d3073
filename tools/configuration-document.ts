import type { Setting } from '../src/config/setting.ts';
import { settingGroups } from '../src/config/settings.ts';

const HEAD = `# Configuration

<!-- Made from the tables of src/config (settings.ts and those that it names): change them there, then run \`npm run configuration\`. -->

Darkroom reads environment variables, once, at its start. An empty one counts as not set. All faults are reported
together, each with the variable's name, the form that was expected and the value that was received (secrets are
masked), and the exit status is 78. \`check\` of the command line looks at them without starting the service:

\`\`\`sh
PORT=eighty STORAGE_DIR=/nowhere node bin/darkroom.mjs check # exit status 78
\`\`\`

\`\`\`
FAULT  settings: PORT: expected an integer from 0 to 65535 but received "eighty"
FAULT  settings: STORAGE_DIR: expected an existing folder but received "/nowhere"
\`\`\`

The AWS SDK reads its usual variables for credentials, such as \`AWS_ACCESS_KEY_ID\` and \`AWS_SECRET_ACCESS_KEY\`, and
Node its own, such as \`NODE_EXTRA_CA_CERTS\`.
`;

/** What stands before a table. */
const introductions: Readonly<Record<string, string>> = {
  Traces: `The OpenTelemetry SDK reads its own variables, with its names and defaults, and warns in the log of what it does not
understand. These are the usual ones; without the first or an endpoint, nothing is traced and the SDK is not loaded.
`,
};

/** The text of `docs/configuration.md`, made from the table of variables. */
export function formatConfiguration(): string {
  const sections = Object.entries(settingGroups).map(([title, rows]) =>
    [
      `## ${title}\n`,
      ...(introductions[title] === undefined ? [] : [introductions[title]]),
      formatRow(['Variable', 'Default', 'Form', 'Meaning']),
      '|---|---|---|---|',
      ...Object.entries(rows).map(([name, row]) => describe(name, row)),
      '',
    ].join('\n'),
  );
  return [HEAD, ...sections].join('\n');
}

function describe(name: string, row: Setting): string {
  const { default: value, defaultText = '', form, description, isSecret } = row;
  const usual = value === undefined || value === '' ? defaultText : `\`${value}\``;
  const meaning = isSecret ? `${description} (secret)` : description;
  return formatRow([`\`${name}\``, usual, form.words, meaning]);
}

function formatRow(cells: readonly string[]): string {
  return `|${cells.map((cell) => (cell === '' ? ' |' : ` ${cell} |`)).join('')}`;
}
