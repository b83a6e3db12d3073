import { describe } from 'vitest';
import { describeProfiles, isShortProfileRow, profileRows, unusableRows } from './profile-run.ts';

describe('every profile in every form', () => {
  describeProfiles(
    profileRows.filter((row) => !isShortProfileRow(row)),
    unusableRows,
  );
});
