import { queryParameters } from '../../src/contract/media-query.ts';
import { type ResourceName, resourceNames, resourceRows } from '../../src/contract/resources.ts';
import type { DescribedResource } from '../../src/explorer/explorer-data.ts';
import type { MediaChoice } from '../../src/explorer/page/media-choice.ts';

/** The kinds as the service describes them to the page, signed ones last. */
export const describedResources: readonly DescribedResource[] = [false, true].flatMap((signed) =>
  resourceNames.flatMap((name) => {
    const { template, extensions = [], query, isSigned } = resourceRows[name];
    if (isSigned !== signed) return [];
    return [{ name, template, extensions, parameters: queryParameters[query] }];
  }),
);

/** @throws Error if there is no such kind */
export function resourceOf(name: ResourceName): DescribedResource {
  const resource = describedResources.find((each) => each.name === name);
  if (resource === undefined) throw new Error(name);
  return resource;
}

/** An avatar in a format. */
export function avatarIn(
  extension: string,
  parameters: MediaChoice['parameters'] = {},
): MediaChoice {
  const values = { user_id: '1', avatar_hash: 'ab12' };
  return { resource: resourceOf('user avatar'), values, extension, parameters };
}

/** An attachment with its name. */
export function attachmentNamed(
  filename: string,
  parameters: MediaChoice['parameters'] = {},
): MediaChoice {
  const values = { channel_id: '1', attachment_id: '2', filename };
  return { resource: resourceOf('attachment'), values, extension: '', parameters };
}
