/** Writes the documents that depend on the code's tables: `npm run docs`. */

import { writeFileSync } from 'node:fs';
import { formatDocuments } from './documents/documents.ts';

for (const [file, text] of formatDocuments()) writeFileSync(file, text);
