/** `erase` leaves a `free` box of zeros; `refuse` rejects the file. */
export type BoxRule =
  | 'keep'
  | 'children'
  | 'erase'
  | 'movie'
  | 'track'
  | 'times'
  | 'handler'
  | 'sample entries'
  | 'sample table'
  | 'items'
  | 'media data'
  | 'track fragment header'
  | 'vendor box of a fragment'
  | 'refuse';

/** Rules for the children of a box, by type. */
interface Children {
  readonly byType: ReadonlyMap<string, BoxRule>;
  readonly others: 'keep' | 'erase';
}

/** Types of metadata in any parent, and of empty space, in which tools may have left data. */
const ERASED_TYPES: readonly string[] = ['udta', 'uuid', 'free', 'skip', 'wide'];

function children(
  others: Children['others'],
  special: Readonly<Record<string, BoxRule>>,
  kept: readonly string[] = [],
): Children {
  const byType = new Map<string, BoxRule>([
    ...ERASED_TYPES.map((type) => [type, 'erase'] as const),
    ['meta', 'items'],
    ...kept.map((type) => [type, 'keep'] as const),
    ...Object.entries(special),
  ]);
  return { byType, others };
}

/**
 * Rules by parent (ISO/IEC 14496-12; QuickTime File Format). In a movie and its tracks, only known boxes stay: vendors
 * put positions and serial numbers there. In sample tables, everything stays that decoders may need.
 */
const RULES: Readonly<Record<string, Children>> = {
  file: children(
    'erase',
    { moov: 'movie', moof: 'children', mdat: 'media data', imda: 'media data', mini: 'refuse' },
    ['ftyp', 'styp', 'pdin', 'sidx', 'ssix', 'mfra'],
  ),
  moov: children('erase', { mvhd: 'times', trak: 'track', cmov: 'refuse' }, [
    ...['mvex', 'iods', 'pssh', 'ctab', 'clip'],
  ]),
  trak: children('erase', { tkhd: 'times', mdia: 'children' }, [
    ...['edts', 'tref', 'load', 'clip', 'matt', 'imap', 'tapt', 'trgr'],
  ]),
  mdia: children('erase', { mdhd: 'times', hdlr: 'handler', minf: 'children' }, ['elng']),
  minf: children('keep', { hdlr: 'handler', stbl: 'children' }),
  stbl: children('keep', {
    stsd: 'sample entries',
    ...{ stsz: 'sample table', stz2: 'sample table', stsc: 'sample table' },
    ...{ stco: 'sample table', co64: 'sample table' },
  }),
  moof: children('keep', { traf: 'children', uuid: 'vendor box of a fragment' }),
  traf: children('keep', { tfhd: 'track fragment header', uuid: 'vendor box of a fragment' }),
};

/** Returns the rule for a box; `parent` is `file` at the top level. */
export function ruleFor(parent: string, type: string): BoxRule {
  const rules = RULES[parent];
  return rules?.byType.get(type) ?? rules?.others ?? 'keep';
}

/** Types of boxes that keep their type when erased. */
export const EMPTY_SPACE: readonly string[] = ['free', 'skip', 'wide', '\0\0\0\0'];
