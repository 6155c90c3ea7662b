// The packages of Pi that a session has: those of the image for every session, and those that its project names. Nothing is
// installed: a package is in the image, or in the copy of the base commit. Must not know Pi. Source: A72, A74 to A78.
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Logger } from '#base/log.ts';
import type { HarnessPackage } from '#daemon/harness/contract/packages.ts';
import { type ClaimAnswer, claimedPackage } from '#schema/wire/claim.ts';

/** What an image brings for Pi: `settings.json`, and packages installed like any npm package. Source: A77, A78. */
const PI_DIRECTORY = '/opt/beeuni/pi-agent';

/** The part of the image's settings that counts. Source: A78. */
const imageSettings = z.object({
  packages: z
    .array(z.union([z.string().transform((source) => ({ source })), claimedPackage]))
    .max(20)
    .default([]),
});

/** Whether there is such a folder. */
export const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

/** The name and version of a pin `npm:<name>@<version>`; undefined for anything else. */
const pinOf = (source: string): Readonly<{ name: string; version: string }> | undefined => {
  const [, name, version] = /^npm:((?:@[\w.-]+\/)?[\w.-]+)@([\w.+-]+)$/.exec(source) ?? [];
  return name === undefined || version === undefined || name.includes('..') ? undefined : { name, version };
};

/** The folder of a pinned package, if the image has this very version; else null. */
const installed = (source: string, piDirectory: string): string | null => {
  const pin = pinOf(source);
  if (pin === undefined) return null;
  const place = join(piDirectory, 'node_modules', pin.name);
  try {
    const found = JSON.parse(readFileSync(join(place, 'package.json'), 'utf8')) as { version?: unknown };
    return found.version === pin.version && isFolder(place) ? place : null;
  } catch {
    return null;
  }
};

/** Path of a package inside the folder that names it; undefined for one that is installed in the image. Source: A74, A77. */
export const packagePath = (source: string): string | undefined =>
  source.startsWith('./') && !source.split('/').includes('..') ? source.slice(2).replace(/\/+$/, '') : undefined;

const within = (folder: string, source: string): string | null => {
  const path = packagePath(source);
  return path !== undefined && isFolder(join(folder, path)) ? join(folder, path) : null;
};

const folderOf = (source: string, folder: string, piDirectory: string): string | null =>
  source.startsWith('./') ? within(folder, source) : installed(source, piDirectory);

/** What the settings of the image name for every session. Settings that cannot be read are logged and name nothing. */
const imagePackages = (piDirectory: string, log: Logger): readonly HarnessPackage[] => {
  const file = join(piDirectory, 'settings.json');
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    return [];
  }
  let settings: z.output<typeof imageSettings>;
  try {
    settings = imageSettings.parse(JSON.parse(text));
  } catch (error) {
    log.error('the packages of the image are left out: its settings cannot be read', { file, err: error });
    return [];
  }
  return settings.packages.map((entry) => ({ ...entry, directory: folderOf(entry.source, piDirectory, piDirectory) }));
};

/**
 * The packages, those of the image first. An entry of the project takes the place of the image's entry of the same package,
 * whatever its version. `copy`: the copy of the base commit. `directory` is null for what is not there. Source: A78.
 */
export const findPackages = (
  claim: Pick<ClaimAnswer, 'harness' | 'piPackages'>,
  copy: string,
  log: Logger,
  piDirectory = PI_DIRECTORY,
): readonly HarnessPackage[] => {
  if (claim.harness !== 'pi') return [];
  const own = claim.piPackages.map((entry) => ({ ...entry, directory: folderOf(entry.source, copy, piDirectory) }));
  const named = new Set(own.map(({ source }) => pinOf(source)?.name));
  const ofImage = imagePackages(piDirectory, log).filter(({ source }) => {
    const name = pinOf(source)?.name;
    return name === undefined || !named.has(name);
  });
  return [...ofImage, ...own];
};
