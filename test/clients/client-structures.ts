/** URLs by the name they go under in a test. */
export type NamedUrls = Readonly<Record<string, string>>;

/** Getters and methods such as `avatarURL`; `getVanityURL` and the like ask the platform's API. */
const isUrlHelper = (name: string): boolean => /URL$/.test(name) && !name.startsWith('get');

function urlHelpersOf(prototype: object): string[] {
  return Object.getOwnPropertyNames(prototype).filter(isUrlHelper);
}

/** Names of the classes of a library that have URL helpers, sorted; a class with two names once. */
export function classesWithUrls(library: object): string[] {
  const classes = Object.values(library).filter(
    (value: unknown) =>
      typeof value === 'function' &&
      value.prototype instanceof Object &&
      urlHelpersOf(value.prototype).length > 0,
  );
  return [...new Set(classes)].map(({ name }) => name).sort();
}

/** What every URL helper of the structures builds without arguments, by `Class.helper`. */
export function urlsOfStructures(structures: readonly object[]): NamedUrls {
  const named = structures.flatMap((structure) =>
    urlHelpersOf(Object.getPrototypeOf(structure)).map((name) => {
      const member: unknown = Reflect.get(structure, name);
      const url: unknown = typeof member === 'function' ? member.call(structure) : member;
      return [`${structure.constructor.name}.${name}`, String(url)];
    }),
  );
  return Object.fromEntries(named);
}
