// Layered values: the answer that gives value, deciding layer and what it overrode.
// It must not know any particular value or layer.

/** A layer with what it says; undefined means that it says nothing. */
export type LayerValue<L extends string, T> = Readonly<{ layer: L; value: T | undefined }>;

/** A decided value: the layer that decided and the lower layers that also said something, nearest first. Source: D19. */
export type Effective<T, L extends string = string> = Readonly<{
  value: T;
  layer: L;
  overrode: readonly Readonly<{ layer: L; value: T }>[];
}>;

/** The value of the first layer that says something, layers given strongest first; undefined if none does. */
export function effective<T, L extends string>(layers: readonly LayerValue<L, T>[]): Effective<T, L> | undefined {
  const said = layers.filter((entry): entry is Readonly<{ layer: L; value: T }> => entry.value !== undefined);
  const [first, ...rest] = said;
  return first === undefined ? undefined : { value: first.value, layer: first.layer, overrode: rest };
}
