import { createRequire } from 'node:module';
import {
  Client,
  GroupChannel,
  Guild,
  GuildPreview,
  GuildScheduledEvent,
  Member,
  Role,
  Shard,
  User,
} from 'eris';
import { buildUrls, type NamedUrls } from './client-structures.ts';
import { clientIds } from './client-urls.ts';

const { user: userId, guild: guildId, channel, emoji, stillHash, animatedHash } = clientIds;

/** Paths as eris keeps them; its types do not tell of the file. */
const endpoints: {
  readonly CDN_URL: string;
  readonly CUSTOM_EMOJI: (id: string) => string;
} = createRequire(import.meta.url)('eris/lib/rest/Endpoints');

/** Structures as eris makes them of the gateway's data, all images with the same hash. */
function createStructures(hash: string) {
  const client = new Client('Bot token');
  // A guild finds its client through the shard it came from. It never connects.
  client.shards.set(0, new Shard(0, client));
  const userData = {
    id: userId,
    username: 'user',
    discriminator: '1',
    avatar: hash,
    banner: hash,
    avatar_decoration_data: { asset: hash, sku_id: '1' },
  };
  const guildData = { id: guildId, icon: hash, banner: hash, splash: hash, discovery_splash: hash };
  const guild = new Guild(guildData, client);
  return {
    user: new User(userData, client),
    guild,
    guildPreview: new GuildPreview(guildData, client),
    member: new Member({ id: userId, user: userData, avatar: hash }, guild, client),
    role: new Role({ id: guildId, permissions: '0', icon: hash }, guild),
    groupChannel: new GroupChannel({ id: channel, recipients: [], icon: hash }, client),
    // Its types have the constructor of another class.
    event: Reflect.construct(GuildScheduledEvent, [
      { id: guildId, guild_id: guildId, image: hash },
      client,
    ]),
  };
}

/** One structure of each class of eris that builds URLs. */
export function createErisStructures(): readonly object[] {
  return Object.values(createStructures(stillHash));
}

/** The URLs of eris that the table lists, by their names there. */
export function erisTableUrls(): NamedUrls {
  const still = createStructures(stillHash);
  const animated = createStructures(animatedHash);
  type Asked = [of: typeof still, format?: Parameters<User['dynamicAvatarURL']>[0], size?: number];
  const kinds = {
    'user avatar': ({ user }, ...asked) => user.dynamicAvatarURL(...asked),
    'guild icon': ({ guild }, ...asked) => guild.dynamicIconURL(...asked),
    banner: ({ guild }, ...asked) => guild.dynamicBannerURL(...asked),
    splash: ({ guild }, ...asked) => guild.dynamicSplashURL(...asked),
    'discovery splash': ({ guild }, ...asked) => guild.dynamicDiscoverySplashURL(...asked),
    'member avatar': ({ member }, ...asked) => member.dynamicAvatarURL(...asked),
  } satisfies Record<string, (...asked: Asked) => string | null>;
  return {
    ...buildUrls<Asked>(kinds, {
      '': [still],
      ' (a_)': [animated],
      ' size=64': [still, 'png', 64],
      ' size=256': [still, 'png', 256],
      ' webp': [still, 'webp', 64],
      ' size=300 (falls back)': [still, 'webp', 300],
    }),
    // Eris has no helper for emojis; bots put the URL together.
    emoji: `${endpoints.CDN_URL}${endpoints.CUSTOM_EMOJI(emoji)}.png`,
    'default avatar': still.user.defaultAvatarURL,
  };
}
