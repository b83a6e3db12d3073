import { describe } from 'vitest';
import { describeProfiles, isShortProfileRow, profileRows, unusableRows } from './profile-run.ts';

describe('one profile of each depth', () => {
  describeProfiles(
    profileRows.filter(isShortProfileRow),
    unusableRows.filter(({ what }) => what === 'of an unknown version'),
  );
});
