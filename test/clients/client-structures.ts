/** URLs by the name they go under in a test. */
export type NamedUrls = Readonly<Record<string, string>>;

/** What each kind builds of the arguments of each variant, by the kind's name with the variant's behind it. */
export function buildUrls<Args extends readonly unknown[]>(
  kinds: Readonly<Record<string, (...args: Args) => string | null | undefined>>,
  variants: Readonly<Record<string, Args>>,
): NamedUrls {
  const named = Object.entries(kinds).flatMap(([kind, build]) =>
    Object.entries(variants).map(([variant, args]) => [kind + variant, String(build(...args))]),
  );
  return Object.fromEntries(named);
}

/** Getters and methods such as `avatarURL`; `getVanityURL` and the like ask the platform's API. */
const isUrlHelper = (name: string): boolean => /URL$/.test(name) && !name.startsWith('get');

/** Sorted: the engine gives the names of a class in an order that may differ from run to run. */
function urlHelpersOf(prototype: object): string[] {
  return Object.getOwnPropertyNames(prototype).filter(isUrlHelper).sort();
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
