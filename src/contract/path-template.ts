import type { ResourceName } from './resources.ts';

/** A segment of a path, as the table of resources writes it. */
export type TemplateSegment =
  | { readonly kind: 'literal'; readonly text: string }
  | { readonly kind: 'placeholder'; readonly name: string; readonly hasExtension: boolean };

/** A path of a resource, taken apart. */
export interface Template {
  readonly resource: ResourceName;
  readonly segments: readonly TemplateSegment[];
}

/** Reads a template: `/avatars/{user_id}/{avatar_hash}.{ext}`. */
export function parseTemplate(template: string): TemplateSegment[] {
  return template
    .slice(1)
    .split('/')
    .map((segment) => {
      const placeholder = /^\{(\w+)\}(\.\{ext\})?$/.exec(segment);
      return placeholder?.[1] === undefined
        ? { kind: 'literal', text: segment }
        : {
            kind: 'placeholder',
            name: placeholder[1],
            hasExtension: placeholder[2] !== undefined,
          };
    });
}
