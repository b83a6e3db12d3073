import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';

/** libde265's C API as Emscripten exports it: pointers and enums are numbers, 64-bit integers are two numbers. */
export interface Libde265 {
  readonly HEAPU8: Uint8Array;
  readonly HEAP32: Int32Array;
  readonly _malloc: (bytes: number) => number;
  readonly _free: (pointer: number) => void;
  readonly _de265_new_decoder: () => number;
  readonly _de265_free_decoder: (decoder: number) => number;
  readonly _de265_set_parameter_bool: (decoder: number, parameter: number, value: number) => void;
  readonly _de265_push_NAL: (
    decoder: number,
    bytes: number,
    length: number,
    timeLow: number,
    timeHigh: number,
    userData: number,
  ) => number;
  readonly _de265_flush_data: (decoder: number) => number;
  readonly _de265_decode: (decoder: number, more: number) => number;
  readonly _de265_get_next_picture: (decoder: number) => number;
  readonly _de265_get_chroma_format: (picture: number) => number;
  readonly _de265_get_bits_per_pixel: (picture: number, channel: number) => number;
  readonly _de265_get_image_width: (picture: number, channel: number) => number;
  readonly _de265_get_image_height: (picture: number, channel: number) => number;
  readonly _de265_get_image_plane: (picture: number, channel: number, stride: number) => number;
  readonly _de265_get_image_full_range_flag: (picture: number) => number;
  readonly _de265_get_image_matrix_coefficients: (picture: number) => number;
}

/** WebAssembly's types, which TypeScript has only for browsers. */
declare global {
  namespace WebAssembly {
    type Module = object;
    type Imports = object;
    interface Instance {
      readonly exports: object;
    }
    const Instance: new (code: Module, imports: Imports) => Instance;
    const RuntimeError: new (message?: string) => Error;
    function compile(code: Uint8Array): Promise<Module>;
  }
}

type Factory = (options: {
  readonly instantiateWasm: (
    imports: WebAssembly.Imports,
    onInstance: (instance: WebAssembly.Instance) => void,
  ) => object;
  readonly print: () => void;
  readonly printErr: () => void;
}) => Libde265;

let compiled: ReturnType<typeof compile> | undefined;

/**
 * Creates an instance of libde265, the HEVC decoder (LGPL-3.0) in `libheif-js`, whose own build of libheif omits
 * deblocking and SAO, and returns green for parts that libde265 could not decode.
 *
 * The code is compiled once per process, but each file gets a new instance, so that a file's effects on memory end with
 * it. (WebAssembly memory cannot shrink.)
 */
export async function createLibde265(): Promise<Libde265> {
  compiled ??= compile();
  const { factory, code } = await compiled.catch((error: unknown) => {
    compiled = undefined; // a descriptor or memory was missing
    throw error;
  });
  return factory({
    instantiateWasm: (imports, onInstance) => {
      const instance = new WebAssembly.Instance(code, imports);
      onInstance(instance);
      return instance.exports;
    },
    print: () => undefined,
    printErr: () => undefined,
  });
}

async function compile() {
  const require = createRequire(import.meta.url);
  // The package's entry looks for the binary in the working directory.
  const code = await readFile(require.resolve('libheif-js/libheif-wasm/libheif.wasm'));
  return {
    factory: require('libheif-js/libheif-wasm/libheif.js') as Factory,
    code: await WebAssembly.compile(code),
  };
}
