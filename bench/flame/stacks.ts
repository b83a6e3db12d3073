/** One call on a stack: a function, or a library whose functions have no names. */
export interface Call {
  readonly name: string;
  readonly kind: CallKind;
}

/** Whose code a call is. */
export type CallKind = 'darkroom' | 'javascript' | 'node' | 'imaging' | 'system';

/** What was seen how often: calls from the outermost to the innermost. */
export interface Stack {
  readonly calls: readonly Call[];
  readonly samples: number;
}

const IMAGING = /libvips|sharp/;

/** Frames of V8 itself that stand between two functions of JavaScript, and tell nothing. */
const BETWEEN =
  /^Builtins_(Interpreter|Baseline|Construct|JS(Entry|Construct)|Call|ArgumentsAdaptor)/;

/**
 * Reads what `perf script -F comm,pid,ip,sym,dso` prints: samples of a process apart by blank lines, each a
 * line with the process, then a line per call from the innermost outwards.
 *
 * Of a library without symbols a call has the library's name; calls of one name in a row are one.
 *
 * @returns alike stacks added up, in the order in which they came first
 */
export function readStacks(text: string): Stack[] {
  const counts = new Map<string, { calls: readonly Call[]; samples: number }>();
  for (const sample of text.split(/\n\s*\n/)) {
    const [head, ...lines] = sample.split('\n').filter((line) => line.trim() !== '');
    if (head === undefined) continue;
    const calls = joinRepeated(lines.flatMap(readCall).reverse());
    if (calls.length === 0) continue;
    const key = calls.map(({ name }) => name).join(';');
    const known = counts.get(key);
    if (known === undefined) counts.set(key, { calls, samples: 1 });
    else known.samples += 1;
  }
  return [...counts.values()];
}

/** `    7f47081b34ab JS:*read file:///srv/dist/http/server.js:12:3+0x8 (/tmp/perf-1.map)` */
function readCall(line: string): Call[] {
  const match = /^\s*[0-9a-f]+ (.*) \((.*)\)$/.exec(line);
  if (match === null) return [];
  const symbol = (match[1] ?? '').replace(/\+0x[0-9a-f]+$/, '');
  const library = (match[2] ?? '').split('/').at(-1) ?? '';
  if (BETWEEN.test(symbol)) return [];
  const script =
    /^(?:JS|LazyCompile|Function|Script|Eval|Module):[~^*+']*(\S*) (\S+?)(?::\d+)?$/.exec(symbol);
  if (script !== null) return [readScriptCall(script[1] ?? '', script[2] ?? '')];
  if (symbol === '[unknown]') {
    // Stubs that V8 has compiled, and addresses where a stack without frame pointers goes astray.
    return /\.map$|^\[unknown\]$/.test(library) ? [] : [{ name: library, kind: kindOf(library) }];
  }
  return [{ name: symbol, kind: kindOf(library) }];
}

function readScriptCall(name: string, place: string): Call {
  const [, path, lineNumber] = /^(.*?)(?::(\d+))?$/.exec(place) ?? [];
  const own = /\/dist\/(.+)\.js$/.exec(path ?? '');
  const isOwn = own !== null && !place.includes('node_modules');
  const where = isOwn ? own[1] : (path ?? '').replace(/^.*\/node_modules\//, '');
  return {
    name: `${name === '' ? '(anonymous)' : name} ${where}:${lineNumber ?? '?'}`,
    kind: isOwn ? 'darkroom' : 'javascript',
  };
}

function kindOf(library: string): CallKind {
  if (IMAGING.test(library)) return 'imaging';
  return library === 'node' ? 'node' : 'system';
}

function joinRepeated(calls: readonly Call[]): Call[] {
  return calls.filter(({ name }, index) => name !== calls[index - 1]?.name);
}
