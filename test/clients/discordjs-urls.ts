import type { CDN } from '@discordjs/rest';
import type { NamedUrls } from './client-structures.ts';
import { clientIds } from './client-urls.ts';

const { user, guild, channel, emoji, sticker, stillHash, animatedHash } = clientIds;

/** Kinds whose helper makes a GIF of an `a_` hash. */
function dynamicUrls(cdn: CDN): NamedUrls {
  type Options = Parameters<CDN['avatar']>[2];
  const kinds = {
    'user avatar': (hash: string, options?: Options) => cdn.avatar(user, hash, options),
    'guild icon': (hash: string, options?: Options) => cdn.icon(guild, hash, options),
    banner: (hash: string, options?: Options) => cdn.banner(guild, hash, options),
    'member avatar': (hash: string, options?: Options) =>
      cdn.guildMemberAvatar(guild, user, hash, options),
    'member banner': (hash: string, options?: Options) =>
      cdn.guildMemberBanner(guild, user, hash, options),
  };
  const extensions = ['png', 'jpg', 'jpeg', 'gif'] as const;
  // The library writes `animated` into every URL, though its types name it for emojis alone.
  const moving = { animated: true, size: 64 } as const;
  const named = Object.entries(kinds).flatMap(([kind, build]) => [
    [kind, build(stillHash)],
    [`${kind} (a_)`, build(animatedHash)],
    [`${kind} (a_ forceStatic)`, build(animatedHash, { forceStatic: true, extension: 'png' })],
    [`${kind} size=64`, build(stillHash, { size: 64 })],
    [`${kind} size=256`, build(stillHash, { size: 256 })],
    [`${kind} webp animated`, build(stillHash, moving)],
    ...extensions.map((extension) => [`${kind} .${extension}`, build(stillHash, { extension })]),
  ]);
  return Object.fromEntries(named);
}

/** The URLs of `@discordjs/rest` that the table lists, by their names there. */
export function discordjsTableUrls(cdn: CDN): NamedUrls {
  return {
    ...dynamicUrls(cdn),
    splash: cdn.splash(guild, stillHash, { size: 64 }),
    'splash (a_)': cdn.splash(guild, animatedHash),
    'discovery splash': cdn.discoverySplash(guild, stillHash),
    emoji: cdn.emoji(emoji),
    'emoji gif': cdn.emoji(emoji, { extension: 'gif' }),
    'emoji webp animated': cdn.emoji(emoji, { animated: true, size: 64 }),
    'emoji webp not animated': cdn.emoji(emoji, { animated: false }),
    sticker: cdn.sticker(sticker),
    'sticker gif': cdn.sticker(sticker, 'gif'),
    'sticker lottie': cdn.sticker(sticker, 'json'),
    'default avatar (index=(id>>22)%6)': cdn.defaultAvatar(1),
    'role icon': cdn.roleIcon(guild, stillHash),
    'channel icon': cdn.channelIcon(channel, stillHash),
    'guild tag badge': cdn.guildTagBadge(guild, stillHash),
    soundboard: cdn.soundboardSound(emoji),
  };
}

/** What `@discordjs/rest` has a helper for and the table no row. */
export function discordjsOtherUrls(cdn: CDN): NamedUrls {
  return {
    'user banner': cdn.banner(user, stillHash),
    'app asset': cdn.appAsset(user, stillHash),
    'app icon': cdn.appIcon(user, stillHash),
    'avatar decoration': cdn.avatarDecoration(stillHash),
    'avatar decoration of a user': cdn.avatarDecoration(user, stillHash),
    'sticker pack banner': cdn.stickerPackBanner(sticker),
    'team icon': cdn.teamIcon(user, stillHash),
    'event cover': cdn.guildScheduledEventCover(guild, stillHash),
  };
}
