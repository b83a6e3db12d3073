import { type Browser, chromium } from 'playwright-core';
import { atEnd } from '../support/at-end.ts';

/** Path in Debian's package; set CHROMIUM for another one. */
const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';

/** Starts Chromium until the end of the file's tests. @param options of its command line */
export async function useBrowser(options: readonly string[] = []): Promise<Browser> {
  // Chromium's sandbox does not work for root.
  const sandbox = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  const browser = await chromium.launch({ executablePath, args: [...sandbox, ...options] });
  atEnd(() => browser.close());
  return browser;
}
