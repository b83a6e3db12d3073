/**
 * What a trace is made of. Where a number was published, its source stands beside it; the others are
 * assumptions, to be replaced by those of the platform's own logs. All requests are those that leave the
 * browsers: their caches are taken as subtracted (they served 65.5 % at Facebook: Huang et al., "An
 * Analysis of Facebook Photo Caching", SOSP 2013).
 */
export const assumptions = {
  /** Requests a day per user who has content, active or not. */
  requestsPerUserPerDay: 20,
  usersPerGuild: 15,
  /** Guilds a user is in; decides how many faces a guild has. */
  guildsPerUser: 10,
  /** Some are everywhere: the loudest share `x` of the users has `x ** (1 / loudness)` of all memberships. */
  loudness: 3,

  /**
   * How unevenly guilds are read, and their members seen. Web proxies were seen with 0.64 to 0.83
   * (Breslau et al., "Web Caching and Zipf-like Distributions", INFOCOM 1999). Emojis are used like
   * words, by Zipf's own law.
   */
  guildExponent: 0.8,
  memberExponent: 0.8,
  emojiExponent: 1,

  /** Of the emojis in a message, those of another guild. */
  foreignEmojiShare: 0.15,
  /** Of the authors, those with an avatar of their own in the guild. */
  memberAvatarShare: 0.05,
  /** Of the authors, those whose moving avatar somebody has pointed at. */
  hoverShare: 0.05,

  /** Sorts of sessions, by weight. */
  sessions: { channel: 82, start: 8, profile: 8, invite: 2 },
  /**
   * What a channel shows, at the mean. All who open it see the same last messages; so many come between
   * two who open it. Most of the attachments were seen before, see below.
   */
  messagesPerChannelView: 3,
  messagesShown: 16,
  emojisPerMessage: 0.35,
  attachmentsPerChannelView: 12,
  stickersPerChannelView: 0.3,
  /** Of the thumbnails, those that are opened. */
  fullViewShare: 0.12,
  guildListLength: 15,

  /**
   * Images posted, as a share of all requests: half an image a day of somebody who asks for 60
   * pictures. (Facebook in 2010: some 0.14 billion uploads a day, a million images a second at peak,
   * so 0.2 to 0.5 %: Beaver et al., "Finding a needle in Haystack", OSDI 2010.)
   */
  uploadsPerRequest: 0.008,
  /**
   * How far back a reader scrolls, in attachments: the share that goes beyond `n` is
   * `(1 + n / recentAttachments) ** -scrollExponent`.
   */
  recentAttachments: 4,
  scrollExponent: 1.3,
  /**
   * What is older was seen before by most, and is in their browsers: of the readers who have it on
   * their screens, `1 / (1 + age / seenAfterDays)` ask for it, never less than `firstSeenShare`. With
   * it, content of a week is asked for an order of magnitude less than that of a day (Muralidhar et
   * al., "f4", OSDI 2014); a test holds it to that.
   */
  seenAfterDays: 0.2,
  firstSeenShare: 0.03,
  membersPerChannel: 40,
  mostChannels: 30,

  /** Replaced a day: the new is asked for from then on, the old is deleted. New users count as well. */
  turnoverPerDay: {
    'user avatar': 0.01,
    'member avatar': 0.01,
    'guild icon': 0.003,
    'guild banner': 0.003,
    'guild splash': 0.003,
    'custom emoji': 0.005,
    sticker: 0.005,
  },
  /** Attachments that are deleted, after a mean of so many days: most are when young (f4, §3). */
  deletedAttachmentShare: 0.05,
  attachmentDaysToDeletion: 1,
  /** Of what a client would ask for and is deleted, what it asks for still. */
  staleShare: 0.1,

  /** The rate swings by this share around its mean within a day. */
  dailySwing: 0.5,

  /** Standard deviation of the logarithm of a picture's bytes, beside others of its size and format. */
  detailSpread: 0.5,
} as const;

/** Seconds of a day. */
export const DAY_S = 86_400;
