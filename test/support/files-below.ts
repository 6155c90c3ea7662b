// Walks a folder. Must not know what is tested.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Paths of all files below a folder. */
export const filesBelow = (folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
