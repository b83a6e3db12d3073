/**
 * The frame of a picture: white, in one type face, with a title.
 *
 * @param content lines of SVG
 */
export function picture(
  width: number,
  height: number,
  title: readonly [x: number, content: string],
  content: readonly string[],
): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="Helvetica, Arial, sans-serif" font-size="12" fill="#222">`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    text(title[0], 26, title[1], 'font-size="17" font-weight="bold"'),
    ...content,
    '</svg>\n',
  ].join('\n');
}

/** A line from one point to another. */
export function line(
  x1: number,
  y1: number,
  x2: number,
  y2: number,
  colour: string,
  dash?: string,
  width = 1,
): string {
  const dashed = dash === undefined ? '' : ` stroke-dasharray="${dash}"`;
  return `<line x1="${round(x1)}" y1="${round(y1)}" x2="${round(x2)}" y2="${round(y2)}" stroke="${colour}" stroke-width="${width}"${dashed}/>`;
}

/** A line of text, its signs escaped. */
export function text(x: number, y: number, content: string, attributes = ''): string {
  return `<text x="${round(x)}" y="${round(y)}" ${attributes}>${escapeSigns(content)}</text>`;
}

/** Text as it may stand in XML. */
export function escapeSigns(content: string): string {
  return content.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

/** As exact as a picture has to be. */
export function round(value: number): number {
  return Math.round(value * 10) / 10;
}
