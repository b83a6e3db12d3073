import type { Setting } from '../../src/config/setting.ts';
import { type SettingName, settingGroups, settingTable } from '../../src/config/settings.ts';
import { code, formatTable } from './table.ts';

/** Settings that every deployment needs. */
const common: readonly SettingName[] = [
  'HOST',
  'PORT',
  'STORAGE',
  'STORAGE_DIR',
  'S3_BUCKET',
  'RESULT_STORE',
  'RESULT_STORE_DIR',
  'TRUST_PROXY',
  'ADMIN_PORT',
  'ADMIN_TOKEN',
];

/** Tables of the settings of each group, by the group's name, and a table of the common settings. */
export const settingTables: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    Object.entries(settingGroups).map(([group, rows]) => [
      `settings: ${group}`,
      formatTable(
        ['Variable', 'Default', 'Form', 'Meaning'],
        Object.entries(rows).map(([name, row]) => [
          code(name),
          defaultOf(row),
          row.type.expected,
          meaningOf(row),
        ]),
      ),
    ]),
  ),
  'common settings': formatTable(
    ['Variable', 'Default', 'Meaning'],
    common.map((name) => [
      code(name),
      defaultOf(settingTable[name]),
      meaningOf(settingTable[name]),
    ]),
  ),
};

function defaultOf({ default: value, defaultText = '', type }: Setting): string {
  if (value === undefined || value === '') return defaultText;
  const text = code(type.format?.(value) ?? String(value));
  return [text, defaultText].filter((part) => part !== '').join(', or ');
}

function meaningOf({ description, isSecret }: Setting): string {
  return isSecret ? `${description} (secret)` : description;
}
