import { MemoryOrigin } from '../../support/memory-origin.ts';
import { describeOrigin } from './origin.contract.ts';

describeOrigin('memory', async () => {
  const origin = new MemoryOrigin();
  return {
    origin,
    put: async (key, bytes) => origin.put(key, bytes, new Date()),
    remove: async (key) => origin.delete(key),
    close: async () => undefined,
  };
});
