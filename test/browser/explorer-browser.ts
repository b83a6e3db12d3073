import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterEach } from 'vitest';
import { patient } from '../support/patient.ts';
import { type ServiceProcess, useService } from '../support/processes/service-process.ts';
import { useBrowser } from './browser.ts';

/** A page of the explorer, and all that it has complained of. */
export interface WatchedPage {
  readonly page: Page;
  /** Errors of scripts and of the console, violations of the policy, requests to elsewhere. */
  readonly complaints: readonly string[];
}

/** A telephone of the smaller ones. */
export const PHONE = {
  viewport: { width: 360, height: 740 },
  isMobile: true,
  hasTouch: true,
} as const;

/**
 * Starts the compiled service and a browser before it, for all tests of a file.
 *
 * @param settings of the service, besides those that the explorer needs
 */
export async function useExplorer(settings: Readonly<Record<string, string>> = {}) {
  const browser = await useBrowser();
  const service = await useService({ WORKERS: '2', EXPLORER: 'on', ...patient, ...settings });
  afterEach(() => Promise.all(browser.contexts().map((context) => context.close())));
  return {
    service,
    /**
     * Opens the explorer in a window of its own, as if by a new visitor, until its test ends. Where the address names
     * a picture, the response to it is shown.
     */
    visit: async (options?: BrowserContextOptions, hash = ''): Promise<WatchedPage> => {
      const watched = await openPage(browser, service, options, hash);
      if (hash.startsWith('#/')) await watched.page.locator(SETTLED).waitFor();
      return watched;
    },
  };
}

/** The stage, once it shows the response. */
const SETTLED = '#stage:not([aria-busy])';

/** The line of the URL. */
export const urlLine = (page: Page) => page.getByRole('textbox', { name: 'URL', exact: true });

/** A fact of what came back. */
export const textOf = (page: Page, name: string) =>
  page.locator(`#response .${name} .value`).textContent();

/** Waits until the response to this address is shown. */
export async function settle(page: Page, target: string): Promise<void> {
  await page.waitForFunction(
    (end) => document.querySelector<HTMLTextAreaElement>('#url')?.value.endsWith(end),
    target,
  );
  await page.locator(SETTLED).waitFor();
}

async function openPage(
  browser: Browser,
  { origin }: ServiceProcess,
  options: BrowserContextOptions = {},
  hash: string,
): Promise<WatchedPage> {
  const context = await browser.newContext({ reducedMotion: 'reduce', ...options });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('pageerror', ({ message }) => complaints.push(`script: ${message}`));
  page.on('console', (message) => {
    if (message.type() !== 'error' && message.type() !== 'warning') return;
    complaints.push(`console: ${message.text()}`);
  });
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(origin) && !url.startsWith('blob:')) complaints.push(`elsewhere: ${url}`);
  });
  await page.goto(`${origin}/${hash}`);
  return { page, complaints };
}
