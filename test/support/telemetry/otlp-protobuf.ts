import type { ReceivedSpan } from './otlp-receiver.ts';

/** A field of a protobuf message: of these wire types, OTLP's spans have all. */
type Field =
  | { readonly number: number; readonly wire: 'varint' | 'fixed'; readonly value: bigint }
  | { readonly number: number; readonly wire: 'bytes'; readonly bytes: Buffer };

/**
 * Reads the spans of an `ExportTraceServiceRequest` (opentelemetry-proto 1.x, `trace.proto`), by the protobuf wire
 * format alone: the packages have an encoder, and no decoder.
 */
export function readProtobufSpans(message: Buffer): ReceivedSpan[] {
  return messagesOf(message, 1).flatMap((resourceSpans) => {
    const resource = readAttributes(messagesOf(messagesOf(resourceSpans, 1)[0], 1));
    return messagesOf(resourceSpans, 2).flatMap((scopeSpans) =>
      messagesOf(scopeSpans, 2).map((span) => readSpan(span, resource)),
    );
  });
}

function readSpan(span: Buffer, resource: Readonly<Record<string, unknown>>): ReceivedSpan {
  const hex = (message: Buffer, number: number): string =>
    messagesOf(message, number)[0]?.toString('hex') ?? '';
  return {
    name: messagesOf(span, 5)[0]?.toString() ?? '',
    traceId: hex(span, 1),
    spanId: hex(span, 2),
    parentSpanId: hex(span, 4),
    kind: Number(numberOf(span, 6) ?? 0n),
    durationMs: Number((numberOf(span, 8) ?? 0n) - (numberOf(span, 7) ?? 0n)) / 1e6,
    attributes: readAttributes(messagesOf(span, 9)),
    status: Number(numberOf(messagesOf(span, 15)[0], 3) ?? 0n),
    links: messagesOf(span, 13).map((link) => ({ traceId: hex(link, 1), spanId: hex(link, 2) })),
    resource,
  };
}

function readAttributes(pairs: readonly Buffer[]): Record<string, unknown> {
  return Object.fromEntries(
    pairs.map((pair) => [
      messagesOf(pair, 1)[0]?.toString() ?? '',
      readValue(messagesOf(pair, 2)[0]),
    ]),
  );
}

/** `AnyValue`: 1 text, 2 truth, 3 integer. */
function readValue(value: Buffer | undefined): unknown {
  const [field] = fieldsOf(value);
  if (field === undefined) return undefined;
  if (field.wire === 'bytes') return field.bytes.toString();
  return field.number === 2 ? field.value === 1n : Number(field.value);
}

function messagesOf(message: Buffer | undefined, number: number): Buffer[] {
  return fieldsOf(message).flatMap((field) =>
    field.number === number && field.wire === 'bytes' ? [field.bytes] : [],
  );
}

function numberOf(message: Buffer | undefined, number: number): bigint | undefined {
  const field = fieldsOf(message).find((candidate) => candidate.number === number);
  return field === undefined || field.wire === 'bytes' ? undefined : field.value;
}

function fieldsOf(message: Buffer = Buffer.alloc(0)): Field[] {
  const fields: Field[] = [];
  let at = 0;
  const readVarint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message.readUInt8(at);
      at += 1;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.length) {
    const tag = Number(readVarint());
    const number = tag >> 3;
    switch (tag & 7) {
      case 0:
        fields.push({ number, wire: 'varint', value: readVarint() });
        break;
      case 1:
        fields.push({ number, wire: 'fixed', value: message.readBigUInt64LE(at) });
        at += 8;
        break;
      case 2: {
        const length = Number(readVarint());
        fields.push({ number, wire: 'bytes', bytes: message.subarray(at, at + length) });
        at += length;
        break;
      }
      case 5:
        fields.push({ number, wire: 'fixed', value: BigInt(message.readUInt32LE(at)) });
        at += 4;
        break;
      default:
        throw new Error(`wire type ${tag & 7} at ${at}`);
    }
  }
  return fields;
}
