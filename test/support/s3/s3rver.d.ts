// The package has no types; these are the parts that tests use.
declare module '@20minutes/s3rver' {
  export default class S3rver {
    constructor(options: object);
    /** Koa middleware, outermost first. */
    readonly middleware: ((
      context: {
        body: unknown;
        status: number;
        readonly method: string;
        readonly query: Readonly<Record<string, string | undefined>>;
      },
      next: () => Promise<void>,
    ) => Promise<void>)[];
    run(): Promise<{ readonly port: number }>;
    close(): Promise<void>;
  }
}

declare module '@20minutes/s3rver/lib/stores/filesystem.js' {
  export default class FilesystemStore {
    static encodeKeyPath(key: string): string;
    getObject(bucket: string, key: string, options?: { readonly end?: number }): Promise<unknown>;
    deleteObject(bucket: string, key: string): Promise<unknown>;
  }
}
