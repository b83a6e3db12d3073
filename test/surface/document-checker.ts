import { expect } from 'vitest';
import type { WireResponse } from '../support/http/wire-response.ts';
import {
  type DocumentedOperation,
  findDeviations,
  findErrorDeviations,
  isValidText,
  operationsOf,
} from '../support/openapi/openapi-reader.ts';
import { isPathValue, parseTarget, type TargetParts } from './contract-oracle.ts';

/** Checks requests and responses against the committed OpenAPI document. */
export class DocumentChecker {
  readonly #operations = ['media', 'signed', 'uploads'].flatMap(operationsOf);
  /** Names of requested operations. */
  readonly met = new Set<string>();

  /** Names of operations that were not requested. */
  get unmet(): readonly string[] {
    const names = this.#operations.map(({ operation }) => operation.operationId);
    return names.filter((name) => !this.met.has(name));
  }

  /** Checks a response to a request for a row of the contract, or for an unknown path. */
  check(method: string, template: string | undefined, response: WireResponse): void {
    const documented = this.#find(method, template);
    if (documented !== undefined) this.met.add(documented.operation.operationId);
    const deviations =
      documented === undefined
        ? findErrorDeviations(method, response)
        : findDeviations(documented, response);
    expect(deviations, `${method} ${template}`).toEqual([]);
  }

  /** Checks an error response to an unknown request. */
  checkError(response: WireResponse): void {
    const { status, body } = response;
    const method = body.length === 0 ? 'HEAD' : 'GET';
    const deviations = findErrorDeviations(method, response);
    // The document omits unknown methods: they are rejected before the request gets an id.
    const ofUnknownMethod = [404, 405].includes(status) ? ['there is no X-Request-Id'] : [];
    expect(deviations.filter((each) => !ofUnknownMethod.includes(each))).toEqual([]);
  }

  /** Returns the sorted names of parameters that are invalid by the document; `undefined` for an unknown path. */
  faultsOf(target: string): readonly string[] | undefined {
    const parts = parseTarget(target);
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
    // The document lists existing indexes; any other one is missing, not invalid.
    if (name === 'index') return value === undefined || !isPathValue(name, value);
    return value === undefined || !isValidText(schema, value);
  }

  #find(method: string, template: string | undefined): DocumentedOperation | undefined {
    return this.#operations.find((each) => each.method === method && each.template === template);
  }
}
