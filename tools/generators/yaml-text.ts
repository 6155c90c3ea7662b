// Objects as YAML text, plain or inside a Helm template.
import { Document, isScalar, Scalar, stringify, visit } from 'yaml';

const OPTIONS = { lineWidth: 0, aliasDuplicateObjects: false } as const;

/** YAML of one object: no line folding, no anchors, text that YAML 1.1 readers would take for something else is quoted. */
export function yamlText(value: unknown): string {
  return stringify(value, { ...OPTIONS, version: '1.1' });
}

/** The same, with the texts of some keys as block literals, so that a Helm action in them may print quotes. */
export function blockYamlText(value: unknown, blockKeys: readonly string[]): string {
  const document = new Document(value, { version: '1.1', aliasDuplicateObjects: false });
  visit(document, {
    Pair(_, pair) {
      if (isScalar(pair.key) && blockKeys.includes(String(pair.key.value)) && isScalar(pair.value)) {
        pair.value.type = Scalar.BLOCK_LITERAL;
      }
    },
  });
  return document.toString(OPTIONS);
}

/** Text as a literal inside a Helm template: what looks like a template action is printed as it is. */
export function escapedForHelm(text: string): string {
  return text.replaceAll('{{', '{{ "{{" }}');
}
