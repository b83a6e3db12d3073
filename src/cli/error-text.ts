import { buffer } from 'node:stream/consumers';
import { z } from 'zod';
import type { OfflineAnswer } from './offline-app.ts';

/** The body of an error, as the contract has it. */
const errorBody = z.object({
  code: z.string(),
  message: z.string(),
  errors: z.array(z.object({ path: z.string(), message: z.string() })).default([]),
});

/** An error of the service for a person: status, code and message, then a line for each fault. */
export async function formatErrorAnswer({ status, body }: OfflineAnswer): Promise<string> {
  const text = (await buffer(body)).toString();
  const { code, message, errors } = errorBody.parse(JSON.parse(text));
  const lines = errors.map((fault) => `\n  ${fault.path}: ${fault.message}`);
  return `${status} ${code}: ${message}${lines.join('')}`;
}
