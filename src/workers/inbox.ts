interface Reader<Message> {
  readonly resolve: (message: Message) => void;
  readonly reject: (error: unknown) => void;
}

/** Queue of received messages with one reader. */
export class Inbox<Message> {
  readonly #unread: Message[] = [];
  #reader: Reader<Message> | undefined;
  #failure: { readonly error: unknown } | undefined;

  get isAwaited(): boolean {
    return this.#reader !== undefined;
  }

  get hasUnread(): boolean {
    return this.#unread.length > 0;
  }

  get hasFailed(): boolean {
    return this.#failure !== undefined;
  }

  push(message: Message): void {
    const reader = this.#reader;
    this.#reader = undefined;
    if (reader === undefined) this.#unread.push(message);
    else reader.resolve(message);
  }

  /** Rejects this and all later reads with the first failure. */
  fail(error: unknown): void {
    this.#failure ??= { error };
    this.#reader?.reject(error);
    this.#reader = undefined;
  }

  next(): Promise<Message> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== undefined) return reject(this.#failure.error);
      const message = this.#unread.shift();
      if (message === undefined) this.#reader = { resolve, reject };
      else resolve(message);
    });
  }
}
