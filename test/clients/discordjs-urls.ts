import type { CDN } from '@discordjs/rest';
import { buildUrls, type NamedUrls } from './client-structures.ts';
import { clientIds } from './client-urls.ts';

const { user, guild, channel, emoji, sticker, stillHash, animatedHash } = clientIds;

type Hashed = [hash: string, options?: Parameters<CDN['avatar']>[2]];

/** Kinds whose helper makes a GIF of an `a_` hash. */
function dynamicUrls(cdn: CDN): NamedUrls {
  const kinds = {
    'user avatar': (...hashed: Hashed) => cdn.avatar(user, ...hashed),
    'guild icon': (...hashed: Hashed) => cdn.icon(guild, ...hashed),
    banner: (...hashed: Hashed) => cdn.banner(guild, ...hashed),
    'member avatar': (...hashed: Hashed) => cdn.guildMemberAvatar(guild, user, ...hashed),
    'member banner': (...hashed: Hashed) => cdn.guildMemberBanner(guild, user, ...hashed),
  };
  // The library writes `animated` into every URL, though its types name it for emojis alone.
  const moving = { animated: true, size: 64 } as const;
  return buildUrls<Hashed>(kinds, {
    '': [stillHash],
    ' (a_)': [animatedHash],
    ' (a_ forceStatic)': [animatedHash, { forceStatic: true, extension: 'png' }],
    ' size=64': [stillHash, { size: 64 }],
    ' size=256': [stillHash, { size: 256 }],
    ' webp animated': [stillHash, moving],
    ' .png': [stillHash, { extension: 'png' }],
    ' .jpg': [stillHash, { extension: 'jpg' }],
    ' .jpeg': [stillHash, { extension: 'jpeg' }],
    ' .gif': [stillHash, { extension: 'gif' }],
  });
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
