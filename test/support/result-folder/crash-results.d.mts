import type { ResultAddress } from '../../../src/pipeline/ports.ts';

export const CRASH_ADDRESSES: number;
export function crashAddressOf(turn: number): ResultAddress;
export function crashBodyOf(turn: number): Buffer<ArrayBuffer>;
