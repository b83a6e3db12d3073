/** Settings for tests that do not test time limits: on a busy machine, no request gets a 503 for waiting too long. */
export const patient = { QUEUE_TIMEOUT_MS: '600000' } as const;
