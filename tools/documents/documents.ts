import { readFileSync } from 'node:fs';
import { attachmentVectors } from './attachment-vectors.ts';
import { drawArchitecture, drawUnderLoad } from './drawings.ts';
import { externalVectors } from './external-vectors.ts';
import { mediaTables } from './media-tables.ts';
import { formatApiPage } from './openapi/api-page.ts';
import { createOpenapiDocument } from './openapi/openapi-document.ts';
import { settingTables } from './setting-tables.ts';
import { uploadVectors } from './upload-vectors.ts';

/** Handwritten documents with generated tables, each between two comments. */
const withTables = [
  'README.md',
  'docs/clients.md',
  'docs/command-line.md',
  'docs/configuration.md',
  'docs/contract.md',
];

const tables: Readonly<Record<string, string>> = { ...mediaTables, ...settingTables };

/**
 * Generates the documents that depend on the code's tables, by their path below the root, which must be the working
 * directory.
 *
 * @throws Error if a document refers to an unknown table, or no document refers to a table
 */
export function formatDocuments(): ReadonlyMap<string, string> {
  const placed = new Set<string>();
  const openapi = createOpenapiDocument();
  const documents = new Map([
    ...withTables.map((file): [string, string] => [file, fillTables(file, placed)]),
    ['docs/openapi.json', formatJson(openapi)],
    ['docs/api.md', formatApiPage(openapi)],
    ['docs/images/architecture.svg', drawArchitecture()],
    ['docs/images/under-load.svg', drawUnderLoad()],
    ['docs/attachment-vectors.json', formatJson(attachmentVectors)],
    ['docs/external-vectors.json', formatJson(externalVectors)],
    ['docs/upload-vectors.json', formatJson(uploadVectors)],
  ]);
  const missing = Object.keys(tables).filter((name) => !placed.has(name));
  if (missing.length > 0) throw new Error(`No document has the tables ${missing.join(', ')}`);
  return documents;
}

function fillTables(file: string, placed: Set<string>): string {
  return readFileSync(file, 'utf8').replace(
    /(<!-- generated: ([^\n]+) -->\n).*?(<!-- \/generated -->)/gs,
    (_, start: string, name: string, end: string) => {
      const table = tables[name];
      if (table === undefined) throw new Error(`${file}: unknown table ${name}`);
      placed.add(name);
      return `${start}${table}\n${end}`;
    },
  );
}

function formatJson(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}
