/** What is used of WebAssembly: its types are part of TypeScript's library for browsers alone. */
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
