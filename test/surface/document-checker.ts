import { expect } from 'vitest';
import type { WireResponse } from '../support/http/wire-response.ts';
import {
  type DocumentedOperation,
  findDeviations,
  findErrorDeviations,
  isValidText,
  operationsOf,
} from '../support/openapi/openapi-reader.ts';
import { isPathValue, type TargetParts, takeApart } from './contract-oracle.ts';

/** Holds requests and responses against the committed OpenAPI document, which is the contract for machines. */
export class DocumentChecker {
  readonly #operations = ['media', 'signed', 'uploads'].flatMap(operationsOf);
  /** Operations that were asked for, by their name. */
  readonly met = new Set<string>();

  /** Names of the operations that nobody asked for. */
  get unmet(): readonly string[] {
    const names = this.#operations.map(({ operation }) => operation.operationId);
    return names.filter((name) => !this.met.has(name));
  }

  /** A response to a request whose path is of this row of the contract, or of none. */
  check(method: string, template: string | undefined, response: WireResponse): void {
    const documented = this.#find(method, template);
    if (documented !== undefined) this.met.add(documented.operation.operationId);
    const deviations =
      documented === undefined
        ? findErrorDeviations(method, response)
        : findDeviations(documented, response);
    expect(deviations, `${method} ${template}`).toEqual([]);
  }

  /** An error response to bytes of which it is not known what they asked for. */
  checkError(response: WireResponse): void {
    const { status, body } = response;
    const method = body.length === 0 ? 'HEAD' : 'GET';
    const deviations = findErrorDeviations(method, response);
    // A method that is on no list is no operation of the document, and is refused before it has an id.
    const ofUnknownMethod = [404, 405].includes(status) ? ['there is no X-Request-Id'] : [];
    expect(deviations.filter((each) => !ofUnknownMethod.includes(each))).toEqual([]);
  }

  /** What is no value of its parameter by the document, by name, sorted; `undefined` of a path that is none. */
  faultsOf(target: string): readonly string[] | undefined {
    const parts = takeApart(target);
    const operation = this.#find('GET', parts?.row.path);
    if (parts === undefined || operation === undefined) return undefined;
    return operation.parameters
      .filter(({ in: place }) => place !== 'header')
      .filter((parameter) => this.#isFault(parameter, parts))
      .map(({ name }) => name)
      .sort();
  }

  #isFault(
    { in: place, name, schema }: DocumentedOperation['parameters'][number],
    { path, query }: TargetParts,
  ): boolean {
    if (place === 'query') {
      const all = query[name] ?? [];
      return all.length > 1 || all.some((value) => !isValidText(schema, value));
    }
    if (!(name in path)) return false;
    const value = path[name];
    // The document has the indexes that there are; another one is missing, not wrong.
    if (name === 'index') return value === undefined || !isPathValue(name, value);
    return value === undefined || !isValidText(schema, value);
  }

  #find(method: string, template: string | undefined): DocumentedOperation | undefined {
    return this.#operations.find((each) => each.method === method && each.template === template);
  }
}
