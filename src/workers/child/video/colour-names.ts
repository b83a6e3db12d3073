import {
  MATRIX_COEFFICIENTS_MAP_INVERSE as matrices,
  TRANSFER_CHARACTERISTICS_MAP_INVERSE as transfers,
} from '../../../../node_modules/mediabunny/dist/modules/src/misc.js';

/** Code points (ITU-T H.273) that WebCodecs cannot name. Patches an internal table of the pinned demultiplexer. */
Object.assign(transfers, { 4: 'bt470m', 5: 'bt470bg' });
Object.assign(matrices, { 4: 'fcc', 7: 'smpte240m', 8: 'ycgco' });
