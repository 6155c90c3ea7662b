// Packages that a project gives its harness, as the host found them. Must not know files or any single harness.
// Source: A72, A74 to A77.

/**
 * One package. `directory`: absolute path of its copy; null: it is not in this sandbox. The lists are glob patterns inside
 * of it that say what loads; absent is all of that kind.
 */
export type HarnessPackage = Readonly<{
  source: string;
  directory: string | null;
  extensions?: readonly string[] | undefined;
  skills?: readonly string[] | undefined;
  prompts?: readonly string[] | undefined;
}>;
