// `oxlint.rooms.generated.json`: the rooms of tools/rooms.ts as lint rules, so that an editor shows a wrong import at once.
// Relative imports, files reached by address and purity of what is imported are judged by test/repo/imports.test.ts alone.
import { ENVIRONMENT_FILES, IMPURE_FILES, PURE_FILES, ROOMS, type Room, SUBPATHS } from '../rooms.ts';
import { type GeneratedFile, jsonText } from './generated-file.ts';

type Override = Readonly<{
  files: readonly string[];
  excludeFiles?: readonly string[];
  rules: Record<string, unknown>;
}>;

/** A glob of our files as imports write it: `kube/**` is `#kube/**`. Throws TypeError when no subpath covers it. */
const asSpecifier = (glob: string): string => {
  for (const [prefix, folder] of Object.entries(SUBPATHS)) {
    if (glob.startsWith(folder)) return prefix + glob.slice(folder.length);
  }
  throw new TypeError(`no subpath of package.json reaches ${glob}`);
};

const allowedBy = (room: Room): readonly string[] => [
  ...room.ours.map(asSpecifier),
  ...room.packages.flatMap((name) => [name, `${name}/**`]),
  ...(Array.isArray(room.node) ? room.node : room.node ? ['node:*', 'node:*/**'] : []),
];

const roomOverride = (room: Room): Override => {
  if (room.ours.includes('**')) return { files: room.files, rules: { 'no-restricted-imports': 'off' } };
  const pattern = {
    group: ['**', './**', '../**', ...allowedBy(room)].map((glob, index) => (index === 0 ? glob : `!${glob}`)),
    allowTypeImports: true,
    message: `The room '${room.name}' may not import this (tools/rooms.ts).`,
  };
  return { files: room.files, rules: { 'no-restricted-imports': ['error', { patterns: [pattern] }] } };
};

const message = 'A pure file has no clock, random or environment (tools/rooms.ts).';
const pureOverride: Override = {
  files: PURE_FILES,
  excludeFiles: [...IMPURE_FILES, ...ENVIRONMENT_FILES],
  rules: {
    'no-restricted-globals': ['error', { name: 'process', message }, { name: 'performance', message }],
    'no-restricted-properties': [
      'error',
      { object: 'Date', property: 'now', message },
      { object: 'Math', property: 'random', message },
    ],
  },
};

// The first room that matches owns a file, but the last override wins.
const overrides: readonly Override[] = [...ROOMS.toReversed().map(roomOverride), pureOverride];

/** The lint rules of the rooms; `.oxlintrc.json` extends them. */
export const lintRoomFiles: readonly GeneratedFile[] = [
  { path: 'oxlint.rooms.generated.json', text: () => jsonText({ overrides }) },
];
