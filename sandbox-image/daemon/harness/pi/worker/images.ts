// Which images of a conversation a model may see: all, the newest ones, or none. Pure; nothing is taken out of what is
// stored. Must not know Pi beyond the shape of a message. Source: 40-settings B7, B8, B10, J7.

/** A message as far as its images matter. */
export type ImageMessage = Readonly<{ role: string; content?: unknown }>;

type Block = Readonly<{ type: string }>;

const blocksOf = (message: ImageMessage): readonly Block[] =>
  Array.isArray(message.content) ? (message.content as readonly Block[]) : [];

const hasImage = (message: ImageMessage): boolean => blocksOf(message).some(({ type }) => type === 'image');

/** The message with words in the place of its images. */
const withoutImages = <M extends ImageMessage>(message: M, words: string): M => ({
  ...message,
  content: blocksOf(message).map((block) => (block.type === 'image' ? { type: 'text', text: words } : block)),
});

/** How many messages keep their images; undefined: all of them. */
export type KeptImages = number | undefined;

/** The messages as the model may see them: the newest `keep` messages with images have them, older ones have words. */
export const evictImages = <M extends ImageMessage>(messages: readonly M[], keep: KeptImages): readonly M[] => {
  if (keep === undefined) return messages;
  const words = keep === 0 ? '[This agent sees no images.]' : '[An older image; read the file again to see it.]';
  let left = keep;
  const result = [...messages];
  for (let at = result.length - 1; at >= 0; at -= 1) {
    const message = result[at];
    if (message === undefined || !hasImage(message)) continue;
    if (left > 0) left -= 1;
    else result[at] = withoutImages(message, words);
  }
  return result;
};
