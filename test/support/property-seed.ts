import fc from 'fast-check';

/** Property tests draw the same cases in every run. Other cases: `PROPERTY_SEED=7 npm test`. */
fc.configureGlobal({ seed: Number(process.env.PROPERTY_SEED ?? 1) });
