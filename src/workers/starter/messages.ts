import type { WorkingWay } from '../confinement/ways.ts';

/**
 * Messages between the main process and the process that starts workers, over Node's IPC: both are ours, and neither
 * reads uploads of strangers.
 */

/** Commands of the main process. */
export type StarterCommand =
  /** Requests the next sandbox that works, strongest first. */
  | { readonly kind: 'find' }
  | {
      readonly kind: 'start';
      /** Identifies the worker in later messages. */
      readonly id: number;
      /** Name of the sandbox. */
      readonly by: string;
      /** Bound of the worker's private writable memory, in bytes. */
      readonly memoryBytes: number;
    }
  | { readonly kind: 'kill'; readonly id: number }
  /** Ends all workers, and then the starter. */
  | { readonly kind: 'stop' };

/** Messages of the starter. */
export type StarterMessage =
  /** Without `way`: no further sandbox works. */
  | { readonly kind: 'found'; readonly way?: WorkingWay }
  /** Carries the channel to the worker, once it has been spawned. */
  | { readonly kind: 'started'; readonly id: number; readonly processId: number }
  /** A line of the worker's standard error. */
  | { readonly kind: 'line'; readonly id: number; readonly line: string }
  /**
   * `ending`: a signal, an exit status, why the worker cannot start, or that it does not end. Sent once, as the last.
   */
  | { readonly kind: 'ended'; readonly id: number; readonly ending: string };
