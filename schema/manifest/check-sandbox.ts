// Sandbox templates: bounds, pins and references. Source: A89, A90, A204.
import { didYouMean } from '../rules/nearest-names.ts';
import type { Manifest } from './manifest.ts';
import type { Report } from './report.ts';
import type { DocumentPath } from './source.ts';
import type { TemplateSummary } from './summary.ts';

/** The name that stands for the template of the platform. */
export const PLATFORM_TEMPLATE = 'default';

const AMOUNTS = {
  cpu: { maximum: 32, unit: '', words: 'cores' },
  memory: { maximum: 128, unit: 'Gi', words: 'GiB' },
  disk: { maximum: 500, unit: 'Gi', words: 'GiB' },
} as const;

/** Number of GiB of `4`, `"4"`, `"4Gi"` or `"4 GiB"`; undefined for another form. */
function gibibytes(value: number | string): number | undefined {
  if (typeof value === 'number') return value;
  const match = /^([0-9]+(?:\.[0-9]+)?) ?(?:Gi|GiB)?$/.exec(value.trim());
  return match === null ? undefined : Number(match[1]);
}

function amount(
  field: keyof typeof AMOUNTS,
  value: number | string | undefined,
  path: DocumentPath,
  report: Report,
): string | undefined {
  if (value === undefined) return undefined;
  const { maximum, unit, words } = AMOUNTS[field];
  const number = gibibytes(value);
  if (number === undefined) {
    report.error(path, `must be a number of GiB, for example 4 or 4Gi`);
    return undefined;
  }
  if (!(number >= 1)) {
    report.error(path, `must be at least 1 ${words}`);
    return undefined;
  }
  if (number > maximum) report.warn(path, `is above ${maximum} ${words}; ${maximum} is used`);
  return `${Math.min(number, maximum)}${unit}`;
}

/** Whether an image reference has a tag or a digest. */
function isPinned(image: string): boolean {
  return /@sha256:[0-9a-f]{64}$/.test(image) || /:[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/.test(image);
}

/** Templates of a manifest; problems go to the report. */
export function checkTemplates(manifest: Manifest, report: Report): readonly TemplateSummary[] {
  const seen = new Set<string>();
  return (manifest.sandbox?.templates ?? []).map((template, index) => {
    const path = ['sandbox', 'templates', index] as const;
    if (template.slug === PLATFORM_TEMPLATE)
      report.error([...path, 'slug'], '"default" is the template of the platform; choose another name');
    if (seen.has(template.slug)) report.error([...path, 'slug'], `another template has the name "${template.slug}"`);
    seen.add(template.slug);
    const image = template.image ?? '';
    if (template.image === undefined) report.error([...path], 'needs image');
    else if (!/^[A-Za-z0-9][A-Za-z0-9._:/@-]*$/.test(image))
      report.error([...path, 'image'], 'is not an image reference');
    else if (!isPinned(image)) report.error([...path, 'image'], 'needs a tag or a digest');
    if (template.entrypoint !== undefined)
      report.warn([...path, 'entrypoint'], 'is ignored: the daemon is the entrypoint of every sandbox', 'key');
    if (template.container_runtime !== undefined)
      report.warn([...path, 'container_runtime'], 'is ignored: the Project sets spec.sandbox.runtimeClassName', 'key');
    if (template.gpu !== undefined) report.warn([...path, 'gpu'], 'is ignored: sandboxes have no GPU', 'key');
    return {
      slug: template.slug,
      name: template.name,
      image,
      cpu: amount('cpu', template.cpu, [...path, 'cpu'], report),
      memory: amount('memory', template.memory, [...path, 'memory'], report),
      disk: amount('disk', template.disk, [...path, 'disk'], report),
    };
  });
}

/** Slug of a template that is named somewhere; undefined for `default` and for nothing. Unknown names are errors. */
export function checkTemplateName(
  name: string | undefined,
  templates: readonly TemplateSummary[],
  path: DocumentPath,
  report: Report,
): string | undefined {
  if (name === undefined || name === PLATFORM_TEMPLATE) return undefined;
  const known = templates.map(({ slug }) => slug);
  if (!known.includes(name)) {
    report.error(path, `no sandbox template is named "${name}"${didYouMean(name, [...known, PLATFORM_TEMPLATE])}`);
  }
  return name;
}
