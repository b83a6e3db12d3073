const LEVELS: Readonly<Record<number, readonly [name: string, color: number]>> = {
  10: ['TRACE', 90],
  20: ['DEBUG', 90],
  30: ['INFO', 32],
  40: ['WARN', 33],
  50: ['ERROR', 31],
  60: ['FATAL', 31],
};

/** Of every line, and of no news to somebody who reads along. */
const HIDDEN = new Set(['level', 'time', 'pid', 'hostname', 'msg', 'err']);

/**
 * A line of the log for a person at a terminal: time, level and message, what belongs to it as `name=value`, and
 * of an error its stack with those of its causes. What is no JSON object passes as it is.
 */
export function formatForTerminal(line: string): string {
  const entry = parseEntry(line);
  if (entry === undefined) return line;
  const [level, color] = LEVELS[Number(entry.level)] ?? [String(entry.level), 0];
  const time = new Date(Number(entry.time)).toTimeString().slice(0, 8);
  const details = Object.entries(entry)
    .filter(([name]) => !HIDDEN.has(name))
    .map(([name, value]) => paint(90, `${name}=`) + formatValue(value));
  const head = [
    time,
    paint(color, level.padEnd(5)),
    harmless(String(entry.msg ?? '')),
    ...details,
  ].join(' ');
  return `${head}\n${formatError(entry.err)}`;
}

function parseEntry(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const entry: unknown = JSON.parse(line);
    return isRecord(entry) ? entry : undefined;
  } catch {
    return undefined;
  }
}

function formatValue(value: unknown): string {
  const isPlain = typeof value === 'string' && /^[!#-<>-~]+$/.test(value);
  return isPlain ? value : harmless(JSON.stringify(value));
}

/** A terminal takes orders from control characters, and lines quote what strangers sent. */
function harmless(text: string): string {
  return text.replaceAll(/[^\P{Cc}\n\t]/gu, '?');
}

function formatError(error: unknown): string {
  if (!isRecord(error)) return '';
  const text = String(error.stack ?? error.message ?? JSON.stringify(error));
  return `${harmless(text).replaceAll(/^/gm, '    ')}\n`;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function paint(color: number, text: string): string {
  return `\u001b[${color}m${text}\u001b[0m`;
}
