import {
  type QueryKind,
  type QueryParameter,
  queryParameters,
} from '../../../src/contract/media-query.ts';
import {
  DEFAULT_AVATAR_COUNT,
  kindOfPathValue,
  type PathValueKind,
  pathValueSyntaxes,
} from '../../../src/contract/resources.ts';
import { capitalize, type Parameter, type Schema } from './model.ts';

const kinds = Object.keys(pathValueSyntaxes) as PathValueKind[];

/** Values of sample originals, for all resources; a test requests each. */
const examples: Readonly<Record<PathValueKind, string>> = {
  snowflake: '1',
  hash: 'ab12',
  name: 'midnight',
  filename: 'country-lane.jpg',
};

const defaultAvatarIndexes = Array.from({ length: DEFAULT_AVATAR_COUNT }, (_, index) => index);

/** Parts of the example of a signed path (contract §8). */
const signedParameters = {
  signature: {
    description:
      'HMAC-SHA256 of the target exactly as in the path, in unpadded base64url. Verified before anything is decoded.',
    schema: { type: 'string', pattern: '^[A-Za-z0-9_-]{43}$' },
    example: 'HoAtalP99iQo3nVDVQZM3oMKkTMch6_OkYyR4qlGur0',
  },
  target: {
    description:
      'URL of another site, or below one of PUBLIC_URLS. Its slashes are slashes of the path; do not encode it again. The opaque form is `v2/` and the unpadded base64url of the URL. The segmented form joins these by slashes: `%3F` and the percent-encoded query, if the URL has one; the scheme; the host; and the segments of the path. With EXTERNAL_PATH_ENCODING=fluxer, the segments are percent-encoded once more.',
    schema: { type: 'string' },
    example: '%3Fw%3D1%26h%3D2/https/media.example.org/a%20b/cat.png',
  },
} as const satisfies Readonly<
  Record<string, Pick<Parameter, 'description' | 'schema' | 'example'>>
>;

function isOfSigned(name: string): name is keyof typeof signedParameters {
  return name in signedParameters;
}

/** The schemas that path parameters refer to. */
export const pathValueSchemas: Readonly<Record<string, Schema>> = Object.fromEntries(
  kinds.map((kind) => [capitalize(kind), describeForm(kind)]),
);

/** Describes the parameters of a path template, in the same order. */
export function describePathParameters(
  template: string,
  extensions: readonly string[],
): readonly Parameter[] {
  const names = [...template.matchAll(/\{(\w+)\}/g)].flatMap(([, name]) => name ?? []);
  return names.map((name) => describePathParameter(name, extensions));
}

/** Every resource with images, stickers included, has the extension `webp`; other resources send their files unchanged. */
function describeExtension(extensions: readonly string[]): string {
  if (extensions.includes('jpeg')) return 'Format of the response; jpg and jpeg are the same.';
  if (extensions.includes('webp')) return 'Format of the response.';
  return 'Extension of the file, which is sent unchanged.';
}

function describePathParameter(name: string, extensions: readonly string[]): Parameter {
  const common = { name, in: 'path', required: true } as const;
  if (name === 'ext') {
    const [example] = extensions;
    return {
      ...common,
      description: describeExtension(extensions),
      schema: { type: 'string', enum: extensions },
      ...(example !== undefined && { example }),
    };
  }
  if (name === 'index') {
    return {
      ...common,
      description: 'Index of the default avatar; any other number is a 404.',
      schema: { type: 'integer', enum: defaultAvatarIndexes },
      example: 0,
    };
  }
  if (isOfSigned(name)) return { ...common, ...signedParameters[name] };
  const kind = kindOfPathValue(name);
  return {
    ...common,
    description: pathValueSyntaxes[kind].description,
    schema: { $ref: `#/components/schemas/${capitalize(kind)}` },
    example: examples[kind],
  };
}

function describeForm(kind: PathValueKind): Schema {
  const form = pathValueSyntaxes[kind];
  return {
    type: 'string',
    minLength: 1,
    pattern: form.pattern,
    ...('maxBytes' in form && { maxLength: form.maxBytes, 'x-max-bytes': form.maxBytes }),
    description: form.description,
    examples: [form.example],
  };
}

/** Describes the parameters of a kind of query. */
export function describeQueryParameters(kind: QueryKind): readonly Parameter[] {
  return queryParameters[kind].map((parameter) => {
    const { name, description } = parameter;
    return { name, in: 'query', description, schema: schemaOf(parameter) };
  });
}

/**
 * Returns the schema of a parameter's parsed value: 128, not "128". An enumeration of numbers or booleans lists their
 * texts, because a query contains only text.
 */
function schemaOf({ form, default: fallback }: QueryParameter): Schema {
  const typed = <Value>(type: string, read: (text: string) => Value, rest: Schema): Schema => ({
    type,
    ...(fallback !== undefined && { default: read(fallback) }),
    ...rest,
  });
  if (form.kind === 'integer') {
    return typed('integer', Number, { minimum: form.min, maximum: form.max });
  }
  const { values } = form;
  if (values.every((text) => /^\d+$/.test(text))) {
    return typed('integer', Number, { enum: values.map(Number) });
  }
  if (values.every((text) => text === 'true' || text === 'false')) {
    return typed('boolean', (text) => text === 'true', {});
  }
  return typed('string', String, { enum: values });
}
