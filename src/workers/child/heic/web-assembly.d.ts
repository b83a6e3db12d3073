/** The parts of WebAssembly that are used: TypeScript has its types only in the library for browsers. */
declare namespace WebAssembly {
  type Module = object;
  type Imports = object;
  interface Instance {
    readonly exports: object;
  }
  const Instance: new (code: Module, imports: Imports) => Instance;
  const RuntimeError: new (message?: string) => Error;
  function compile(code: Uint8Array): Promise<Module>;
}
