import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import sharp from 'sharp';
import { beforeAll, describe, expect, test } from 'vitest';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { hasFfmpeg } from '../../support/videos.ts';
import { clean } from './clean.ts';

const run = (command: string, ...args: readonly string[]): string =>
  execFileSync(command, args, { encoding: 'utf8', stdio: 'pipe', maxBuffer: 2 ** 26 });

const hasExiftool = spawnSync('exiftool', ['-ver']).status === 0;
const hasLibheif = spawnSync('heif-convert', []).error === undefined;

const EXIF = [
  ...['-GPSLatitude=48.8584', '-GPSLatitudeRef=N', '-GPSLongitude=2.2945', '-GPSLongitudeRef=E'],
  ...['-EXIF:Make=S3CRET make', '-EXIF:Model=S3CRET model', '-EXIF:Software=S3CRET software'],
  ...['-EXIF:DateTimeOriginal=2026:11:28 10:00:00', '-EXIF:SerialNumber=S3CRET serial'],
  ...['-EXIF:Artist=S3CRET artist', '-EXIF:OwnerName=S3CRET owner', '-EXIF:Orientation#=6'],
  ...['-EXIF:UserComment=S3CRET comment', '-EXIF:Copyright=S3CRET', '-EXIF:LensModel=S3CRET'],
];
const XMP = ['-XMP-dc:Creator=S3CRET', '-XMP-exif:GPSLatitude=48.8584'];
const IPTC = ['-IPTC:By-line=S3CRET', '-Photoshop:CaptionWriter=S3CRET', '-AFCP:By-line=S3CRET'];
const TEXTS = ['-PNG:Title=S3CRET', '-PNG:ModifyDate=2026:11:28 10:00:00', '-Comment=S3CRET'];
const QUICKTIME = [
  ...['-Keys:GPSCoordinates=48.8584,2.2945,35', '-Keys:Make=S3CRET', '-Keys:Model=S3CRET'],
  ...['-Keys:CreationDate=2026:11:28 10:00:00', '-Keys:Software=S3CRET', '-Keys:Author=S3CRET'],
  ...['-UserData:GPSCoordinates=48.8584,2.2945,35', '-UserData:Comment=S3CRET'],
  ...['-ItemList:Title=S3CRET', '-ItemList:Comment=S3CRET', ...XMP],
  ...['CreateDate', 'TrackCreateDate', 'MediaCreateDate', 'TrackModifyDate'].map(
    (tag) => `-QuickTime:${tag}=2026:11:28 10:00:00`,
  ),
];

/** Originals by the name of the copy to which exiftool writes metadata. */
const SAMPLES: Readonly<Record<string, readonly [original: string, ...tags: readonly string[]]>> = {
  'photo.jpg': [
    'corpus/jpeg-photo/wuffs__hibiscus.regular.jpeg',
    ...EXIF,
    ...XMP,
    ...IPTC,
    '-Comment=S3CRET',
  ],
  'gain-map-of-apple.jpg': [
    'corpus/icc-wide/libavif__apple_gainmap_new.jpg',
    ...EXIF,
    ...XMP,
    ...IPTC,
  ],
  'gain-map-of-android.jpg': [
    'corpus/jpeg-gps/libavif__seine_sdr_gainmap_srgb.jpg',
    ...EXIF,
    ...XMP,
  ],
  'photo.png': ['corpus/png-alpha/libavif__abc.png', ...EXIF, ...XMP, ...TEXTS],
  'animation.png': ['corpus/apng/imagers__ball.png', ...EXIF, ...XMP, ...TEXTS],
  'animation.gif': ['gif/dispose2-256-colours.gif', ...XMP, '-Comment=S3CRET'],
  'photo.heic': ['heic/gps.heic', ...EXIF, ...XMP],
  'turned.heic': ['heic/turned.heic', ...EXIF, ...XMP],
  'of-an-iphone.heic': ['corpus/heic/filetype__fixture-heic.heic', ...EXIF, ...XMP],
  'photo.avif': ['corpus/avif/libavif__paris_icc_exif_xmp.avif', ...EXIF, ...XMP],
  'clip.mp4': ['video/clip-h264.mp4', ...QUICKTIME],
  'clip-with-its-index-first.mp4': ['video/clip-faststart-601-full.mp4', ...QUICKTIME],
  'phone.mov': ['video/phone-portrait.mov', ...QUICKTIME],
};

/** Groups of exiftool that describe the file system, the container, or colours. */
const TECHNICAL = /^(System|File|ExifTool|Composite|ICC|JFIF|APP14)/;

/** Tags that reveal the place, the time, the device or the author. */
const REVEALING =
  /^(GPS|Make|Model|Lens|Serial|Software|Owner|Artist|Author|Creator|Copyright|Title|Description)|Comment|Date|By-line|Location|Writer|Vendor|Compressor(Name)?$|HandlerDescription|Encoder|Unique|Identifier/;

/** Returns the tags that a file should not have, and warnings. */
function revealingTags(file: string): string[] {
  const [tags] = JSON.parse(run('exiftool', '-json', '-G1', '-ee', '-a', file));
  return Object.entries<unknown>(tags).flatMap(([name, value]) => {
    const [group = '', tag = ''] = name.split(':');
    const isWarning = tag === 'Warning';
    // An erased time of a movie has the year 0.
    const isEmpty = value === '' || String(value).startsWith('0000:00:00');
    const isRevealing = !TECHNICAL.test(group) && REVEALING.test(tag) && !isEmpty;
    return isWarning || isRevealing ? [`${name}: ${String(value)}`] : [];
  });
}

describe.skipIf(!hasExiftool)('(exiftool is installed) a cleaned file', () => {
  let directory: string;
  beforeAll(async () => {
    directory = (await useTemporaryDirectory()).path;
  });

  /** Cleans a file; returns the paths of the original and of the result. */
  function cleanFile(name: string, file: Buffer): readonly [string, string] {
    const paths = [
      join(directory, `original-${name}`),
      join(directory, `cleaned-${name}`),
    ] as const;
    writeFileSync(paths[0], file);
    writeFileSync(paths[1], clean(file, [65_536]).bytes);
    return paths;
  }

  function expectNothingRevealed(original: string, cleaned: string): void {
    expect(revealingTags(original).length).toBeGreaterThan(1);
    expect(revealingTags(cleaned)).toEqual([]);
    const text = readFileSync(cleaned, 'latin1');
    expect(text).not.toMatch(/S3CRET|2026:11:28|2026-11-28|48[.]8|\+48/);
  }

  test.each(Object.entries(SAMPLES))(
    'has no metadata that exiftool or strings find: %s',
    (name, [source, ...tags]) => {
      const tagged = join(directory, name);
      writeFileSync(tagged, readFileSync(`fixtures/${source}`));
      run('exiftool', '-quiet', '-ignoreMinorErrors', '-overwrite_original', ...tags, tagged);
      const paths = cleanFile(name, readFileSync(tagged));
      expectNothingRevealed(...paths);
      const [before, after] = paths;
      // ffmpeg rejects an animation with texts, cleaned or not.
      const isDecoded = !/heic|avif|animation.png/.test(name);
      if (hasFfmpeg && isDecoded) expect(framesOf(after)).toBe(framesOf(before));
      if (hasLibheif && /heic|avif/.test(name))
        expect(picturesOf(after)).toEqual(picturesOf(before));
    },
  );

  test('has no metadata that exiftool or strings find, if it is a WebP', async () => {
    const exif = {
      IFD0: { Make: 'S3CRET', Artist: 'S3CRET' },
      IFD3: { GPSLatitude: '48/1 51/1 30/1' },
    };
    const picture = sharp('fixtures/corpus/webp-animated/sharp__rotating-squares.webp', {
      animated: true,
    });
    const paths = cleanFile(
      'animation.webp',
      await picture.withExif(exif).withXmp('<x>S3CRET</x>').webp().toBuffer(),
    );
    expectNothingRevealed(...paths);
  });

  test.skipIf(!hasFfmpeg)(
    'has no metadata that exiftool or strings find, if it is a movie of ffmpeg with timecodes',
    () => {
      const tagged = join(directory, 'timecode.mov');
      const tags = [
        'title=S3CRET',
        'location=+48.8584+002.2945/',
        'creation_time=2026-11-28T10:00:00Z',
      ];
      const options = tags.flatMap((tag) => ['-metadata', tag]);
      const input = [
        '-v',
        'error',
        '-i',
        'fixtures/video/clip-faststart-601-full.mp4',
        '-c',
        'copy',
      ];
      const flags = ['-timecode', '10:11:12:13', '-movflags', '+faststart+use_metadata_tags'];
      run(
        'ffmpeg',
        ...input,
        ...options,
        '-metadata:s:v:0',
        'handler_name=S3CRET',
        ...flags,
        tagged,
      );
      const paths = cleanFile('timecode.mov', readFileSync(tagged));
      expectNothingRevealed(...paths);
      expect(framesOf(paths[1])).toBe(framesOf(paths[0]));
    },
  );

  /** Hashes of all frames with their times and durations. */
  const framesOf = (file: string): string =>
    run('ffmpeg', '-v', 'error', '-i', file, '-map', '0:v', '-map', '0:a?', '-f', 'framemd5', '-');

  /** Files that libheif writes of all pictures in a file, without the metadata that it copies. */
  function picturesOf(file: string): readonly string[] {
    run('heif-convert', file, `${file}.out.png`);
    const names = readdirSync(directory).filter((name) =>
      join(directory, name).startsWith(`${file}.out`),
    );
    return names.sort().map((name) => pixelDigest(readFileSync(join(directory, name))));
  }
});

function pixelDigest(png: Buffer): string {
  const hash = createHash('sha256');
  for (let at = 8; at < png.length; ) {
    const end = at + 12 + png.readUInt32BE(at);
    if (/IHDR|IDAT/.test(png.toString('latin1', at + 4, at + 8)))
      hash.update(png.subarray(at, end));
    at = end;
  }
  return hash.digest('hex');
}
