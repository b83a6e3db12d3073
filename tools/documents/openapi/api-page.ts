import { code, formatTable } from '../table.ts';
import type {
  OpenapiDocument,
  Operation,
  Parameter,
  PathItem,
  Reference,
  ResponseObject,
  Schema,
} from './model.ts';
import { capitalize } from './model.ts';

const METHODS = ['get', 'head', 'post', 'put', 'delete', 'options'] as const;

/** Maximum length of a line of prose. */
const MAX_LINE = 130;

/** Formats the document as Markdown: paths by tag, then shared headers, errors and schemas. */
export function formatApiPage(document: OpenapiDocument): string {
  const { components, paths, tags } = document;
  const resolve = <Value extends object>(value: Value | Reference): Value => {
    if (!('$ref' in value)) return value;
    const [kind = '', name = ''] = value.$ref.split('/').slice(-2);
    return (components as unknown as Record<string, Record<string, Value>>)[kind]?.[name] as Value;
  };
  /** Heading of the first path with a text, by that text; later paths with the same text refer to it. */
  const shown = new Map<string, string>();

  const formatPath = ([path, item]: [string, PathItem]): string => {
    const operations = METHODS.flatMap((method) => {
      const operation = item[method];
      return operation === undefined ? [] : [{ method: method.toUpperCase(), operation }];
    });
    const main = operations[0]?.operation as Operation;
    const heading = headingOf(path, item);
    const withBody = operations.filter(({ operation }) => operation.requestBody !== undefined);
    const same = new Map<string, string[]>();
    const once = (what: string, text: string): string => {
      const first = shown.get(text);
      if (first === undefined) shown.set(text, heading);
      else if (text !== '') same.set(first, [...(same.get(first) ?? []), what]);
      return first === undefined ? text : '';
    };
    return join(
      `### ${heading}`,
      item.summary && code(`${methodsOf(item)} ${path}`),
      operations.length > 1 && item.summary === undefined
        ? formatList(
            operations.map(({ method, operation: { summary } }) => `${method}: ${summary}.`),
          )
        : wrap(`${main.summary}.`),
      main.description && wrap(main.description),
      item['x-origin-key'] && wrap(`Key of the original: ${code(item['x-origin-key'])}.`),
      formatParameters([...(item.parameters ?? []), ...pick(main, 'path')].map(resolve), 'Path'),
      once('the query', formatParameters(pick(main, 'query'), 'Query')),
      ...withBody.map(({ method, operation }) =>
        wrap(`Body of ${method}: ${formatRequestBody(operation.requestBody?.content)}.`),
      ),
      ...operations.map(({ method, operation }) =>
        once(`the responses to ${method}`, formatResponses(method, operation)),
      ),
      ...Array.from(same, ([first, parts]) =>
        wrap(
          `${capitalize(listOf(parts))} ${parts.join() === 'the query' ? 'is' : 'are'} the same as for ` +
            `[${first}](#${anchorOf(first)}).`,
        ),
      ),
    );
  };
  const pick = ({ parameters = [] }: Operation, place: Parameter['in']): readonly Parameter[] =>
    parameters.map((each) => resolve<Parameter>(each)).filter((each) => each.in === place);

  const formatResponses = (method: string, { responses }: Operation): string => {
    const entries = Object.entries(responses).map(
      ([status, response]) => [status, resolve<ResponseObject>(response)] as const,
    );
    const successes = entries.filter(([status]) => Number(status) < 400);
    const errors = entries.filter(([status]) => Number(status) >= 400);
    return join(
      formatTable(
        [`Response to ${method}`, 'Meaning', 'Body', 'Headers'],
        successes.map(([status, { description, content, headers }]) => [
          status,
          cell(description),
          content === undefined ? '' : cell(formatContent(content)),
          ownHeaders(headers).join(', '),
        ]),
      ),
      errors.length > 0 && wrap(`Errors: ${errors.map(([status]) => status).join(', ')}.`),
    );
  };
  const common = commonHeaders(document, resolve);
  const ownHeaders = (headers: ResponseObject['headers']): readonly string[] =>
    Object.keys(headers)
      .filter((name) => !common.includes(name))
      .map(code);

  const parts = tags.map(({ name, description }) => {
    const entries = Object.entries(paths).filter(([, item]) => tagOf(item) === name);
    return join(`## ${capitalize(name)}`, wrap(description), ...entries.map(formatPath));
  });
  const errors = Object.entries(components.schemas).flatMap(([name, { properties }]) =>
    isError(properties) ? [[name, properties] as const] : [],
  );
  const errorNames = errors.map(([name]) => name);
  const schemas = Object.entries(components.schemas).filter(([name]) => !errorNames.includes(name));
  return `${join(
    '# API reference',
    wrap(
      'This page lists every path with its parameters, responses and headers. `npm run docs` generates it from ' +
        '[openapi.json](openapi.json), which client generators can read, and which the admin listener serves as ' +
        '`/openapi.json`. The [contract](contract.md) defines the behaviour in detail. `x-origin-key` in openapi.json is ' +
        'the *Key of the original* on this page.',
    ),
    formatTable(
      ['Path', 'Methods', ''],
      Object.entries(paths).map(([path, item]) => [
        `[${code(path)}](#${anchorOf(headingOf(path, item))})`,
        methodsOf(item),
        item.summary ?? summariesOf(item).join('; '),
      ]),
    ),
    ...parts,
    '## Request headers',
    formatParameters(Object.values(components.parameters), 'Header'),
    '## Response headers',
    wrap(
      `The tables above omit the headers that every 200 for media and uploads has: ${common.map(code).join(', ')}.`,
    ),
    formatTable(
      ['Header', 'Meaning'],
      Object.entries(components.headers)
        .filter(([name]) => !/-(?:If-Any|Of-Uploads|Or-None|With-Rates)$/.test(name))
        .map(([name, { description }]) => [code(name), cell(description)]),
    ),
    '## Error bodies',
    wrap('Every error is a JSON object with a stable `code`, and a `message` for people.'),
    formatTable(
      ['Code', 'Message', 'Other members'],
      errors.map(([, { code: constant, message, ...more }]) => [
        code(String(constant?.const)),
        cell(String((message?.examples as readonly string[] | undefined)?.[0] ?? '')),
        Object.keys(more).map(code).join(', '),
      ]),
    ),
    '## Bodies and values',
    ...schemas.map(([name, schema]) => join(`### ${name}`, formatSchema(schema))),
  )}\n`;
}

/** Whether the properties of a schema are those of an error. */
function isError(properties: unknown): properties is Readonly<Record<string, Schema>> {
  const { code: constant } = (properties ?? {}) as Readonly<Record<string, Schema | undefined>>;
  return constant?.const !== undefined;
}

/** Returns the headers that all successful responses for media and uploads have. */
function commonHeaders(
  { paths }: OpenapiDocument,
  resolve: (response: ResponseObject | Reference) => ResponseObject,
): readonly string[] {
  const lists = Object.values(paths)
    .flatMap(({ get, put }) => [get, put].flatMap((each) => each ?? []))
    .filter(({ tags }) => !['admin', 'internal'].includes(tags[0] ?? ''))
    .flatMap(({ responses }) => (responses[200] === undefined ? [] : resolve(responses[200])))
    .map(({ headers }) => Object.keys(headers));
  return (lists[0] ?? []).filter((name) => lists.every((list) => list.includes(name)));
}

function tagOf(item: PathItem): string | undefined {
  return METHODS.flatMap((method) => item[method] ?? [])[0]?.tags[0];
}

function headingOf(path: string, item: PathItem): string {
  return item.summary ?? `${methodsOf(item)} ${path}`;
}

function methodsOf(item: PathItem): string {
  return METHODS.filter((method) => item[method] !== undefined)
    .join(' ')
    .toUpperCase();
}

function summariesOf(item: PathItem): readonly string[] {
  return METHODS.flatMap((method) => item[method]?.summary ?? []);
}

/** Returns the anchor of a heading, as GitHub makes it. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\w -]/g, '')
    .replaceAll(' ', '-');
}

function formatParameters(parameters: readonly Parameter[], name: string): string {
  if (parameters.length === 0) return '';
  return formatTable(
    [name, 'Value', 'Default', 'Meaning'],
    parameters.map(({ name: each, schema, description, required }) => [
      code(each) + (required && name === 'Query' ? ', required' : ''),
      cell(formatValue(schema)),
      schema.default === undefined ? '' : code(String(schema.default)),
      cell(description),
    ]),
  );
}

function formatContent(content: ResponseObject['content'] = {}): string {
  return Object.entries(content)
    .map(([type, { schema }]) =>
      schema.$ref === undefined && schema.type !== 'object'
        ? code(type)
        : `${code(type)}: ${formatValue(schema)}`,
    )
    .join(', ');
}

/** Formats a request body; JSON without a named schema refers to openapi.json. */
function formatRequestBody(content: ResponseObject['content'] = {}): string {
  const json = content['application/json']?.schema;
  if (json === undefined || json.$ref !== undefined) return formatContent(content);
  return '`application/json`, with the schema in [openapi.json](openapi.json)';
}

/** Formats a schema in a few words. */
function formatValue(schema: Schema): string {
  const { $ref, type, enum: words, const: constant, items, minimum, maximum } = schema;
  if (typeof $ref === 'string') {
    const name = $ref.split('/').at(-1) ?? '';
    return `[${name}](#${anchorOf(name)})`;
  }
  const choices = (schema.oneOf ?? schema.anyOf) as readonly Schema[] | undefined;
  if (choices !== undefined) return [...new Set(choices.map(formatValue))].join(' or ');
  if (constant !== undefined) return code(JSON.stringify(constant));
  if (Array.isArray(words)) {
    return words.every((word) => typeof word === 'number')
      ? words.join(' ')
      : words.map((word) => code(String(word))).join(', ');
  }
  const bounds =
    typeof maximum === 'number' && maximum < Number.MAX_SAFE_INTEGER
      ? ` from ${minimum} to ${maximum}`
      : '';
  if (type === 'array') return `list of ${formatValue((items ?? {}) as Schema)}`;
  return `${[type].flat().join(' or ')}${bounds}`;
}

/** Formats a schema as a table of its members, or as a value. */
function formatSchema(schema: Schema): string {
  const variants = schema.oneOf as readonly Schema[] | undefined;
  const description = typeof schema.description === 'string' && wrap(schema.description);
  if (variants !== undefined) {
    const properties = Object.assign({}, ...variants.map((each) => each.properties));
    const required = Object.keys(properties);
    return join(
      description,
      'An object with one of these members:',
      formatMembers({ properties, required }),
    );
  }
  if (schema.properties !== undefined) return join(description, formatMembers(schema));
  return description || wrap(`Type: ${formatValue(schema)}.`);
}

function formatMembers({ properties = {}, required = [] }: Schema): string {
  const rows = (members: Readonly<Record<string, Schema>>, prefix: string): string[][] =>
    Object.entries(members).flatMap(([name, schema]) => {
      const nested = ((schema.items as Schema | undefined) ?? schema).properties;
      return [
        [
          code(prefix + name),
          cell(formatValue(schema)),
          (required as readonly string[]).includes(name) || prefix !== '' ? '' : 'optional',
          cell(String(schema.description ?? '')),
        ],
        ...rows((nested ?? {}) as Readonly<Record<string, Schema>>, `${prefix}${name}.`),
      ];
    });
  return formatTable(['Member', 'Value', '', 'Meaning'], rows(properties as never, ''));
}

/** Joins phrases with commas and "and". */
function listOf(phrases: readonly string[]): string {
  return [phrases.slice(0, -1).join(', '), ...phrases.slice(-1)].filter(Boolean).join(' and ');
}

function formatList(items: readonly string[]): string {
  return items.map((item) => wrap(`- ${item}`).replaceAll('\n', '\n  ')).join('\n');
}

/** Joins blocks with empty lines; omits missing ones. */
function join(...blocks: readonly (string | false | undefined)[]): string {
  return blocks.filter(Boolean).join('\n\n');
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ');
}

function wrap(text: string): string {
  const lines = [''];
  for (const word of text.split(/\s+/)) {
    const line = lines.at(-1) ?? '';
    if (line !== '' && line.length + 1 + word.length > MAX_LINE - 2) lines.push(word);
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
  }
  return lines.join('\n');
}
