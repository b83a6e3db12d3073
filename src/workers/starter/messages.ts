import type { WorkingWay } from '../confinement/ways.ts';

/**
 * What the main process and the process that starts workers say to each other, by Node's IPC: both are ours, and
 * neither reads what strangers upload.
 */

/** What the main process asks for. */
export type StarterCommand =
  /** The next way that works, the most confining first. */
  | { readonly kind: 'find' }
  | {
      readonly kind: 'start';
      /** By which the worker is spoken of from then on. */
      readonly id: number;
      /** Name of the way. */
      readonly by: string;
      /** Private writable memory that it may have, in bytes. */
      readonly memoryBytes: number;
    }
  | { readonly kind: 'kill'; readonly id: number }
  /** Ends all workers, and itself then. */
  | { readonly kind: 'stop' };

/** What the starter says. */
export type StarterMessage =
  /** Without a way: there are no more. */
  | { readonly kind: 'found'; readonly way?: WorkingWay }
  /** Comes with the channel to the worker, once it has been spawned. */
  | { readonly kind: 'started'; readonly id: number; readonly processId: number }
  /** The worker has written a line to its standard error. */
  | { readonly kind: 'line'; readonly id: number; readonly line: string }
  /** `ending`: a signal, an exit status, or why it could not be started. The last that is said of a worker. */
  | { readonly kind: 'ended'; readonly id: number; readonly ending: string };
