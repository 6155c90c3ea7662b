// Objects as YAML text, plain or inside a Helm template.
import { stringify } from 'yaml';

/** YAML of one object: no line folding, no anchors, text that YAML 1.1 readers would take for something else is quoted. */
export function yamlText(value: unknown): string {
  return stringify(value, { lineWidth: 0, aliasDuplicateObjects: false, version: '1.1' });
}

/** Text as a literal inside a Helm template: what looks like a template action is printed as it is. */
export function escapedForHelm(text: string): string {
  return text.replaceAll('{{', '{{ "{{" }}');
}
