import { drive, type Load } from './load.ts';

/** Entry of a child process: drives one load at a time, so that its generator disturbs no other. */
process.on('message', (load: Load) => {
  void drive(load).then(
    (result) => process.send?.({ kind: 'done', result }),
    (error: unknown) => process.send?.({ kind: 'failed', message: String(error) }),
  );
});
process.on('disconnect', () => process.exit());
