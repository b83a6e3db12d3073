import type { Page } from 'playwright-core';

/** A text that is too faint on its ground. */
export interface FaintText {
  readonly text: string;
  readonly ratio: number;
}

/** What was measured of a page. */
export interface ContrastReport {
  /** How many texts there were. */
  readonly texts: number;
  readonly faint: readonly FaintText[];
}

/**
 * Measures every text that is seen against the ground behind it (WCAG 2.2, 1.4.3: 4.5 to 1, of large text
 * 3 to 1). Grounds are those of elements: texts over pictures are not judged.
 */
export function measureContrast(page: Page): Promise<ContrastReport> {
  return page.evaluate(() => {
    type Colour = readonly [number, number, number, number];
    const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
    const read = (colour: string): Colour => {
      if (canvas === null) throw new Error('no canvas');
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      const [red = 0, green = 0, blue = 0, alpha = 0] = canvas.getImageData(0, 0, 1, 1).data;
      return [red, green, blue, alpha / 255];
    };
    const linear = (value: number): number =>
      value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4;
    const luminance = ([red, green, blue]: Colour): number =>
      0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
    const groundOf = (element: Element): Colour => {
      for (let at: Element | null = element; at !== null; at = at.parentElement) {
        const colour = read(getComputedStyle(at).backgroundColor);
        if (colour[3] === 1) return colour;
      }
      return [255, 255, 255, 1];
    };
    let texts = 0;
    const faint: FaintText[] = [];
    for (const element of document.body.querySelectorAll('*')) {
      const text = [...element.childNodes]
        .filter((node) => node.nodeType === Node.TEXT_NODE)
        .map((node) => node.textContent?.trim() ?? '')
        .join('');
      if (text === '' || !element.checkVisibility({ visibilityProperty: true })) continue;
      texts += 1;
      const { color, fontSize, fontWeight } = getComputedStyle(element);
      const [lighter = 0, darker = 0] = [luminance(read(color)), luminance(groundOf(element))].sort(
        (a, b) => b - a,
      );
      const ratio = (lighter + 0.05) / (darker + 0.05);
      const size = Number.parseFloat(fontSize);
      const isLarge = size >= 24 || (size >= 18.66 && Number(fontWeight) >= 700);
      if (ratio < (isLarge ? 3 : 4.5)) faint.push({ text, ratio });
    }
    return { texts, faint };
  });
}
