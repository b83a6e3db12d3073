import type { BrowserContextOptions } from 'playwright-core';
import { afterEach } from 'vitest';
import { patient } from '../support/patient.ts';
import { useService } from '../support/processes/service-process.ts';
import { useBrowser } from './browser.ts';

/** Selector of the stage after the response has been shown. */
export const SETTLED = '#stage:not([aria-busy])';

/** Starts the compiled service and a browser for the tests of a file; adds `settings` to those of the explorer. */
export async function useExplorer(settings: Readonly<Record<string, string>>) {
  const browser = await useBrowser();
  const service = await useService({ WORKERS: '2', EXPLORER: 'on', ...patient, ...settings });
  afterEach(() => Promise.all(browser.contexts().map((context) => context.close())));
  return {
    service,
    /** Opens the explorer in a new context until the end of the test, and waits for a picture that the URL names. */
    visit: async (options: BrowserContextOptions = {}, hash = '') => {
      const context = await browser.newContext({ reducedMotion: 'reduce', ...options });
      const page = await context.newPage();
      /** Script and console errors, policy violations, and requests to other origins. */
      const complaints: string[] = [];
      page.on('pageerror', ({ message }) => complaints.push(`script: ${message}`));
      page.on('console', (message) => {
        if (message.type() !== 'error' && message.type() !== 'warning') return;
        complaints.push(`console: ${message.text()}`);
      });
      page.on('request', (request) => {
        const url = request.url();
        if (url.startsWith(service.origin) || url.startsWith('blob:')) return;
        complaints.push(`elsewhere: ${url}`);
      });
      await page.goto(`${service.origin}/${hash}`);
      if (hash.startsWith('#/')) await page.locator(SETTLED).waitFor();
      return { page, complaints };
    },
  };
}
