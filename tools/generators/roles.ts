// The rights of the operator as the chart's roles read them. Source: 10-kubernetes §9, operator/rbac.ts.
import { SECRET_RULES } from '#operator/project/controller.ts';
import { OPERATOR_RULES } from '#operator/rbac.ts';
import { GENERATED_YAML_NOTE, type GeneratedFile } from './generated-file.ts';
import { yamlText } from './yaml-text.ts';

/** Lists of policy rules: what the operator may do in every watched namespace, and to Secrets where it is let. */
export const roleFiles: readonly GeneratedFile[] = [
  {
    path: 'charts/beeuni/files/operator-rules.generated.yaml',
    text: () => GENERATED_YAML_NOTE + yamlText(OPERATOR_RULES),
  },
  {
    path: 'charts/beeuni/files/operator-secret-rules.generated.yaml',
    text: () => GENERATED_YAML_NOTE + yamlText(SECRET_RULES),
  },
];
