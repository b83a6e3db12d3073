import {
  Application,
  Client,
  GroupChannel,
  Guild,
  GuildPreview,
  GuildScheduledEvent,
  type ImageFormat,
  InviteGuild,
  Member,
  OAuthApplication,
  OAuthGuild,
  PartialApplication,
  PrimaryGuild,
  Routes,
  User,
  Webhook,
} from 'oceanic.js';
import { buildUrls, type NamedUrls } from './client-structures.ts';
import { clientIds } from './client-urls.ts';

const {
  user: userId,
  guild: guildId,
  channel,
  emoji,
  sticker,
  stillHash,
  animatedHash,
} = clientIds;

/** The API's data for a structure, as far as its URLs need it. */
const raw = <T>(data: Partial<NoInfer<T>>): T => data as T;

/** Structures as oceanic.js makes them of the API's data, all images with the same hash. */
function createStructures(client: Client, hash: string) {
  const userData = raw<ConstructorParameters<typeof User>[0]>({
    id: userId,
    username: 'user',
    discriminator: '1',
    avatar: hash,
    banner: hash,
    avatar_decoration_data: { asset: hash, sku_id: '1' },
  });
  const images = { icon: hash, splash: hash, discovery_splash: hash };
  const guildData = {
    id: guildId,
    ...images,
    banner: hash,
    features: [],
    emojis: [],
    stickers: [],
  };
  const memberData = { user: userData, avatar: hash, banner: hash, roles: [] };
  const decoration = { avatar_decoration_data: { asset: hash, sku_id: '1' } };
  const application = { id: guildId, icon: hash, cover_image: hash, owner: userData };
  return {
    user: new User(userData, client),
    guild: new Guild(raw({ ...guildData, roles: [] }), client),
    guildPreview: new GuildPreview(raw(guildData), client),
    inviteGuild: new InviteGuild(raw(guildData), client),
    oauthGuild: new OAuthGuild(raw({ ...guildData, permissions: '0' }), client),
    member: new Member(raw({ ...memberData, ...decoration }), client, guildId),
    application: new Application(raw(application), client),
    oauthApplication: new OAuthApplication(raw(application), client),
    partialApplication: new PartialApplication(raw(application), client),
    groupChannel: new GroupChannel(
      raw({ id: channel, icon: hash, recipients: [], application_id: guildId }),
      client,
    ),
    event: new GuildScheduledEvent(raw({ id: guildId, guild_id: guildId, image: hash }), client),
    primaryGuild: new PrimaryGuild(raw({ identity_guild_id: guildId, badge: hash }), client),
    webhook: new Webhook(
      raw({ id: userId, avatar: hash, source_guild: { id: guildId, icon: hash, name: 'guild' } }),
      client,
    ),
  };
}

/** One structure of each class of oceanic.js that builds URLs. */
export function createOceanicStructures(): readonly object[] {
  return Object.values(createStructures(new Client({}), stillHash));
}

/** The URLs of oceanic.js that the table lists, by their names there. */
export function oceanicTableUrls(): NamedUrls {
  const client = new Client({});
  const still = createStructures(client, stillHash);
  const animated = createStructures(client, animatedHash);
  type Asked = [of: typeof still, format?: ImageFormat, size?: number];
  const kinds = {
    'user avatar': ({ user }, ...asked) => user.avatarURL(...asked),
    'guild icon': ({ guild }, ...asked) => guild.iconURL(...asked),
    banner: ({ guild }, ...asked) => guild.bannerURL(...asked),
    splash: ({ guild }, ...asked) => guild.splashURL(...asked),
    'discovery splash': ({ guild }, ...asked) => guild.discoverySplashURL(...asked),
    'member avatar': ({ member }, ...asked) => member.avatarURL(...asked),
    'member banner': ({ member }, ...asked) => member.bannerURL(...asked),
  } satisfies Record<string, (...asked: Asked) => string | null>;
  return {
    ...buildUrls<Asked>(kinds, {
      '': [still],
      ' (a_)': [animated],
      ' size=64': [still, 'webp', 64],
      ' size=256': [still, 'webp', 256],
      ' size=300': [still, 'webp', 300],
      ' size=63 (falls back)': [still, 'webp', 63],
    }),
    emoji: client.util.formatImage(Routes.CUSTOM_EMOJI(emoji), 'webp', 64),
    sticker: client.util.formatImage(Routes.STICKER(sticker), 'png', 64),
    'default avatar': client.util.formatImage(Routes.EMBED_AVATAR(1), 'png'),
    'default avatar (User)': still.user.defaultAvatarURL(),
  };
}
