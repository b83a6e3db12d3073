import type { TestProject } from 'vitest/node';
import { startCephRgw } from './ceph-rgw.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The gateway of this run, and who may use it. */
    readonly rgw: {
      readonly endpoint: string;
      readonly accessKeyId: string;
      readonly secretAccessKey: string;
    };
  }
}

/** Starts the gateway once per run; what is returned ends it. */
export default async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const { stop, ...rgw } = await startCephRgw();
  provide('rgw', rgw);
  return stop;
}
