import type { BrowserContextOptions } from 'playwright-core';
import { afterEach } from 'vitest';
import { patient } from '../support/patient.ts';
import { useService } from '../support/processes/service-process.ts';
import { useBrowser } from './browser.ts';

/** The stage, once it shows the response. */
export const SETTLED = '#stage:not([aria-busy])';

/**
 * Starts the compiled service and a browser before it, for all tests of a file.
 *
 * @param settings of the service, besides those that the explorer needs
 */
export async function useExplorer(settings: Readonly<Record<string, string>>) {
  const browser = await useBrowser();
  const service = await useService({ WORKERS: '2', EXPLORER: 'on', ...patient, ...settings });
  afterEach(() => Promise.all(browser.contexts().map((context) => context.close())));
  return {
    service,
    /**
     * Opens the explorer in a window of its own, as if by a new visitor, until its test ends. Where the address names
     * a picture, the response to it is shown.
     */
    visit: async (options: BrowserContextOptions = {}, hash = '') => {
      const context = await browser.newContext({ reducedMotion: 'reduce', ...options });
      const page = await context.newPage();
      /** Errors of scripts and of the console, violations of the policy, requests to elsewhere. */
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
