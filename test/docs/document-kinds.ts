/** How the commands of a document are tested. */
export type Document =
  /** They are run; with the sample originals on port 3000, where they ask for them. */
  | { readonly kind: 'run'; readonly asksService: boolean }
  /** They are those of CI, which runs them: here it is seen that they exist. */
  | { readonly kind: 'scripts' }
  /** There are none, or none in `sh` blocks: those in `console` blocks need root, Docker or an S3 server. */
  | { readonly kind: 'no commands' };

/** Every document. To have another one tested, write its line. */
export const documents: Readonly<Record<string, Document>> = {
  'attachments.md': { kind: 'run', asksService: false },
  'clients.md': { kind: 'run', asksService: true },
  'command-line.md': { kind: 'run', asksService: false },
  'compatibility.md': { kind: 'no commands' },
  'configuration.md': { kind: 'run', asksService: false },
  'contract.md': { kind: 'no commands' },
  'contributing.md': { kind: 'scripts' },
  'deploy.md': { kind: 'run', asksService: true },
  'design.md': { kind: 'no commands' },
  'external.md': { kind: 'run', asksService: false },
  'performance.md': { kind: 'scripts' },
  'purge.md': { kind: 'no commands' },
  'rates.md': { kind: 'run', asksService: false },
  'safety.md': { kind: 'run', asksService: true },
  'uploads.md': { kind: 'no commands' },
  'watch.md': { kind: 'run', asksService: false },
};
