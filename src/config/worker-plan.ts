/**
 * What a light render may take besides its original, in bytes. Measured: up to 215 MiB with the process itself, which
 * has 85 of them (a progressive JPEG of 20 megapixels in 4:4:4).
 */
const LIGHT_MEMORY_BYTES = 288 * 1024 ** 2;

/**
 * How many render processes each lane may have, and the private writable memory of each of them, in bytes.
 *
 * Each lane has a process for every core, and the two of a core share its memory: a light render decodes no more
 * than some megapixels, so a heavy one has most of it. Where there is too little for two, the lanes share the cores:
 * half of them, rounded down, are for heavy renders, and each lane has one at least.
 *
 * @param memoryBytes of all processes of one core
 */
export function planWorkers(cores: number, memoryBytes: number, maxOriginalBytes: number) {
  const light = LIGHT_MEMORY_BYTES + maxOriginalBytes;
  const heavy = memoryBytes - light;
  if (heavy >= light) {
    return { workers: { light: cores, heavy: cores }, memoryBytes: { light, heavy } };
  }
  const heavyWorkers = Math.max(1, Math.floor(cores / 2));
  return {
    workers: { light: Math.max(1, cores - heavyWorkers), heavy: heavyWorkers },
    memoryBytes: { light: memoryBytes, heavy: memoryBytes },
  };
}
