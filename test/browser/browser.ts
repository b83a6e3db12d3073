import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

/** Where Debian's package has it; CHROMIUM names another one. */
const EXECUTABLE = process.env.CHROMIUM ?? '/usr/bin/chromium';

/** Whether there is a browser. */
export const hasBrowser = existsSync(EXECUTABLE);

/**
 * Starts Chromium.
 *
 * @param options of its command line
 * @throws Error if there is no browser
 */
export async function startBrowser(options: readonly string[] = []): Promise<Browser> {
  if (!hasBrowser) throw new Error(`There is no browser at ${EXECUTABLE}.`);
  // Its sandbox does not work for root.
  const sandbox = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  return await chromium.launch({ executablePath: EXECUTABLE, args: [...sandbox, ...options] });
}
