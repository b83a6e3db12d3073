import type { Rendering } from './originals.ts';

/**
 * The request target by which another server is asked for a rendering.
 *
 * @param template with `{width}`, `{format}`, `{path}` (of the original, below the folder), and for
 *   animations `{animated}`, which becomes `true` or `false`
 * @throws Error if it has a field of another name
 */
export function fillTemplate(
  template: string,
  { path, widthPx, format, isAnimated }: Omit<Rendering, 'darkroomPath' | 'shrinksOnLoad'>,
): string {
  const fields: Readonly<Record<string, string>> = {
    width: String(widthPx),
    format,
    path,
    animated: String(isAnimated),
  };
  return template.replace(/\{([^}]*)\}/g, (_, name: string) => {
    const value = fields[name];
    if (value === undefined) throw new Error(`--server: {${name}} is none of its fields`);
    return value;
  });
}

/** A server that somebody else runs, and how it is asked. */
export interface ForeignServer {
  readonly name: string;
  readonly origin: string;
  /** See `fillTemplate`. */
  readonly target: string;
}

/** Whether it says how it is asked for animations. */
export function knowsAnimations({ target }: ForeignServer): boolean {
  return target.includes('{animated}');
}

/**
 * What `--server` is given: a name, an origin with its port, and a template.
 *
 * @throws Error if it is not of the form `NAME=http://host:port/…`, or has an unknown field
 */
export function parseServer(option: string): ForeignServer {
  const [, name, origin, target] = /^([^=]+)=(http:\/\/[^/]+:\d+)(\/.*)$/.exec(option) ?? [];
  if (name === undefined || origin === undefined || target === undefined) {
    throw new Error(`--server: expected NAME=http://host:port/path but received ${option}`);
  }
  fillTemplate(target, { path: 'a', widthPx: 1, format: 'webp', isAnimated: false });
  return { name, origin, target };
}
