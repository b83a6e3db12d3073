import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { apngDrawings } from '../support/images/apng-drawings.ts';
import { composeApng, composeStill } from '../support/images/compose-apng.ts';
import { type DrawnApng, drawApng } from '../support/images/draw-apng.ts';
import {
  compareImages,
  type DecodedImage,
  decodeImage,
} from '../support/images/image-comparison.ts';
import { createTestApp, type TestApp } from '../support/test-app.ts';

/** Exact pixels at the picture's own size. */
const ANIMATED = 'x?format=webp&animated=true';

describe('the frames of an APNG', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await createTestApp();
  });
  afterAll(() => app.close());
  let id = 0;

  const ask = async (original: Uint8Array, query: string) => {
    id += 1;
    app.originals.put(`attachments/1/${id}/x`, original);
    return app.server.inject({ url: `/attachments/1/${id}/${query}` });
  };

  test.each(apngDrawings)('$name', async ({ drawn }) => {
    const { statusCode, rawPayload, headers } = await ask(drawApng(drawn), ANIMATED);
    expect([statusCode, headers['content-type']]).toEqual([200, 'image/webp']);
    const shown = await decodeImage(rawPayload);
    expect(compareImages(expectedImage(drawn), withoutUnseen(shown), 'exact')).toEqual([]);
    const still = await ask(drawApng(drawn), 'x?format=png');
    const picture = await decodeImage(still.rawPayload);
    const shape = { ...picture, delaysMs: undefined, plays: undefined };
    expect(compareImages({ ...shape, frames: [composeStill(drawn)] }, picture, 'exact')).toEqual(
      [],
    );
  });
});

function expectedImage(drawn: DrawnApng) {
  const frames = composeApng(drawn);
  const isAnimated = frames.length > 1;
  return {
    widthPx: drawn.widthPx,
    heightPx: drawn.heightPx,
    frames: frames.map(blankUnseen),
    delaysMs: isAnimated
      ? drawn.frames.map(({ delay: [part, of] = [1, 10] }) =>
          Math.round((part * 1000) / (of || 100)),
        )
      : undefined,
    plays: isAnimated ? (drawn.plays ?? 0) : undefined,
  };
}

/** libwebp keeps no colours below an alpha of 0 in an animation. */
function withoutUnseen(image: DecodedImage): DecodedImage {
  return { ...image, frames: image.frames.map(blankUnseen) };
}

function blankUnseen(frame: Uint8Array): Uint8Array {
  return frame.map((sample, at) => (frame[at - (at % 4) + 3] === 0 ? 0 : sample));
}
