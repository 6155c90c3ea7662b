// What the manifest validator needs from a YAML parser, and what it says about a place in a file.
// It must not know any parser: `base/yaml.ts` is one.

/** A place in a file; both count from 1. */
export type Place = Readonly<{ line: number; column: number }>;

/** Keys and indexes from the root of a document to a value. */
export type DocumentPath = readonly (string | number)[];

/** Why a text could not be read as a document. */
export type YamlProblem = Place & Readonly<{ code: 'SyntaxError' | 'TooLarge'; message: string }>;

/** A parsed document. With problems there is no value. `placeOf` gives the nearest existing parent of a missing path. */
export type ParsedYaml = Readonly<{
  value: unknown;
  problems: readonly YamlProblem[];
  placeOf: (path: DocumentPath, part?: 'key' | 'value') => Place;
}>;

/** Reads a YAML text with limits; never throws for a text. */
export type ParseYaml = (text: string) => ParsedYaml;

/** Kinds of manifest errors; also the reasons of condition ManifestValid. */
export const MANIFEST_ERROR_CODES = ['Missing', 'SyntaxError', 'SchemaError', 'VersionTooNew', 'TooLarge'] as const;
export type ManifestErrorCode = (typeof MANIFEST_ERROR_CODES)[number];

/** One problem of a repository file: what is wrong, where, and what would be right. */
export type ManifestProblem = Place & Readonly<{ path: string; code: ManifestErrorCode; message: string }>;
