export function findPhrases(
  file: string,
  text: string,
): { readonly line: number; readonly phrase: string; readonly instead: string }[];
