// Gathers what is to be written during one turn of the event loop, and writes it at the turn's end, all at once. A write to
// a socket may wake the process that waits behind it, on another core: writes between which something else is done wake it
// each time, writes that follow one another mostly once. Must not know what is written. Source: docs/decisions/0041.

/** Gives back a function that takes an item, for which `write` runs at the end of this turn. `write` must not throw. */
export const makeTurnEnd = <T>(write: (item: T) => void): ((item: T) => void) => {
  let items: T[] = [];
  const writeAll = (): void => {
    const taken = items;
    items = [];
    for (const item of taken) write(item);
  };
  return (item) => {
    if (items.length === 0) setImmediate(writeAll);
    items.push(item);
  };
};
