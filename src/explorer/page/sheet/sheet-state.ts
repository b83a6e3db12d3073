import { computed, signal } from '@preact/signals';
import { visibleShelves } from '../originals.ts';
import { currentFrame } from '../state.ts';

/** Kinds whose frames are folded away. */
export const folded = signal<ReadonlySet<string>>(new Set());

/** Id of the frame that last had the focus. */
export const focusedId = signal<string>();

/** Shelves that are not folded away. */
export const openShelves = computed(() =>
  visibleShelves.value.filter(({ resource }) => !folded.value.has(resource.name)),
);

/** All frames of these shelves. */
export const openFrames = computed(() => openShelves.value.flatMap(({ frames }) => frames));

/** Id of the frame at which the Tab key stops: the focused one, else the current one, else the first. */
export const stopId = computed(() => {
  const isThere = (id: string | undefined) => openFrames.value.some((frame) => frame.id === id);
  const wanted = [focusedId.value, currentFrame.value?.id];
  return wanted.find(isThere) ?? openFrames.value[0]?.id;
});
