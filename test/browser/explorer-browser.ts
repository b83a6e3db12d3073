import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { patient } from '../support/patient.ts';
import { type ServiceProcess, startService } from '../support/processes/service-process.ts';
import { startBrowser } from './browser.ts';

/** A page of the explorer, and all that it has complained of. */
export interface WatchedPage {
  readonly page: Page;
  /** Errors of scripts and of the console, violations of the policy, requests to elsewhere. */
  readonly complaints: readonly string[];
}

/** The compiled service and a browser before it. */
export interface ExplorerBrowser {
  readonly service: ServiceProcess;
  /** Opens the explorer in a window of its own, as if by a new visitor. */
  readonly open: (options?: BrowserContextOptions, hash?: string) => Promise<WatchedPage>;
  readonly close: () => Promise<void>;
}

/**
 * Starts both.
 *
 * @param settings of the service, besides those that the explorer needs
 * @throws Error if there is no browser
 */
export async function startExplorerBrowser(
  settings: Readonly<Record<string, string>> = {},
): Promise<ExplorerBrowser> {
  const browser = await startBrowser();
  const service = await startService({ WORKERS: '2', EXPLORER: 'on', ...patient, ...settings });
  return {
    service,
    open: (options, hash = '') => openPage(browser, service, options, hash),
    close: async () => {
      await browser.close();
      await service.stop();
    },
  };
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
