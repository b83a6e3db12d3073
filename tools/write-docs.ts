/**
 * Writes the documents that follow from the tables of the code:
 *
 *     npm run docs
 */

import { writeFileSync } from 'node:fs';
import { formatDocuments } from './documents/documents.ts';

for (const [file, text] of formatDocuments()) writeFileSync(file, text);
