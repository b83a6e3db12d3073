/**
 * Settings for tests whose subject is not time: on a machine that has much else to do, no request is
 * refused for having to wait.
 */
export const patient = { QUEUE_TIMEOUT_MS: '600000' } as const;
