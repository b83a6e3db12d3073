import { type MediaRequest, parseTarget } from '../../src/contract/media-request.ts';
import { layOutOriginals } from '../scale/replay-originals.ts';
import { generateTrace, type TraceOptions } from '../trace/trace.ts';

/** One request of a trace, in the words of both. */
export interface TraceRequest {
  readonly darkroom: string;
  readonly ipx: string;
}

/** A trace that two services can be sent, and the folder of its originals. */
export interface TraceRequests {
  readonly folder: string;
  readonly requests: readonly TraceRequest[];
  /** Different ones among them. */
  readonly renderings: number;
  readonly remove: () => void;
}

/**
 * Generates a trace whose originals are fixtures. What was made equal: stickers are asked for with
 * quality 80, since IPX has no lossless; attachments that are served byte for byte are left out, since IPX
 * would encode them anew, and whoever uses it would have his proxy fetch them from the bucket.
 *
 * What could not be: IPX neither keeps GIF delays exactly nor passes an unchanged original through, and looks for
 * its `Last-Modified` with a request of its own.
 *
 * @param options `requests`: with the attachments that are left out
 */
export function createTraceRequests(options: TraceOptions): TraceRequests {
  const { trace, folder, targets, remove } = layOutOriginals(generateTrace(options));
  const requests = [...trace.renderings].flatMap((rendering) => {
    const target = targets[rendering] ?? '';
    return translate(target) ?? [];
  });
  const renderings = new Set(requests.map(({ darkroom }) => darkroom)).size;
  return { folder, requests, renderings, remove };
}

/** Both ways to ask; `undefined` for what is no rendering. */
export function translate(target: string): TraceRequest | undefined {
  const isSticker = target.startsWith('/stickers/');
  const darkroom = isSticker ? `${target}${target.includes('?') ? '&' : '?'}quality=high` : target;
  const parsed = parseTarget(darkroom);
  if (parsed.kind !== 'media' || parsed.request.isVerbatim) return undefined;
  return { darkroom, ipx: `/${formatModifiers(parsed.request)}/${parsed.request.originKey}` };
}

/** A height is asked for in no trace. */
function formatModifiers({ widthPx, format, isAnimated }: MediaRequest): string {
  const modifiers = [
    ...(widthPx === undefined ? [] : [`w_${widthPx}`]),
    ...(format === undefined ? [] : [`f_${format}`]),
    ...(isAnimated ? ['animated'] : []),
  ];
  return modifiers.join(',') || '_';
}
