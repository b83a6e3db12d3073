import { describe, expect, test } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { describeUnknownSetting } from '../../src/config/unknown-settings.ts';

describe('variables that look like ours', () => {
  test.each([
    ['STORAGE_DIRR', 'STORAGE_DIRR is no setting of Darkroom; is STORAGE_DIR meant?'],
    ['STORAGE_FOLDER', 'STORAGE_FOLDER is no setting of Darkroom'],
    ['S3_PREFFIX', 'S3_PREFFIX is no setting of Darkroom; is S3_PREFIX meant?'],
    ['S3_KEY', 'S3_KEY is no setting of Darkroom'],
    ['CACHE_MEMORY', 'CACHE_MEMORY is no setting of Darkroom'],
    ['RESULT_STORE_DIRECTORY', 'RESULT_STORE_DIRECTORY is no setting of Darkroom'],
    ['LOG_LEVL', 'LOG_LEVL is no setting of Darkroom; is LOG_LEVEL meant?'],
    ['TRUSTPROXY', 'TRUSTPROXY is no setting of Darkroom; is TRUST_PROXY meant?'],
    ['EXPLORERR', 'EXPLORERR is no setting of Darkroom; is EXPLORER meant?'],
  ])('%s is warned of', (name, text) => {
    const { unknownSettings } = readConfig({ [name]: 'hush' });
    expect(unknownSettings.map(describeUnknownSetting)).toEqual([text]);
  });

  test.each([
    'HOME',
    'HOSTNAME',
    'SORT',
    'LOG_FORMAT',
    'MAX_MEMORY',
    'NODE_OPTIONS',
    'AWS_S3_REGION',
    'OTEL_METRICS_EXPORTER',
    'MEDIA_ROOT',
    'STORAGE',
  ])('%s is of another program, or known', (name) => {
    expect(readConfig({ [name]: 'filesystem' }).unknownSettings).toEqual([]);
  });
});
