import fc from 'fast-check';

/**
 * Property tests draw the same cases every time, so that a run is red for the change under test and nothing else, and a
 * count of the cases that were seen is the same everywhere. Other cases: `PROPERTY_SEED=7 npm test`.
 */
fc.configureGlobal({ seed: Number(process.env.PROPERTY_SEED ?? 1) });
