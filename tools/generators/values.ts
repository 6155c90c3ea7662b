// The JSON Schema by which Helm checks the values of the chart.
import { strictJsonSchema } from '#schema/structural.ts';
import { ValuesSchema } from '#schema/values.ts';
import { type GeneratedFile, jsonText } from './generated-file.ts';

/** `charts/beeuni/values.schema.json`. Source: K30. */
export const valuesFiles: readonly GeneratedFile[] = [
  {
    path: 'charts/beeuni/values.schema.json',
    text: () =>
      jsonText({
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        title: 'Values of the Beeuni chart',
        ...strictJsonSchema(ValuesSchema),
      }),
  },
];
