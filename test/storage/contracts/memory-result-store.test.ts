import { MemoryResultStore } from '../../support/memory-result-store.ts';
import { describeResultStore } from './result-store.contract.ts';

describeResultStore('memory', async () => ({
  store: new MemoryResultStore(),
  close: async () => undefined,
}));
