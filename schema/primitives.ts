// Leaf values that mean the same in resources, manifests, REST bodies and settings: zod schemas with their bounds,
// and the words of the Kubernetes schema (list types, CEL rules) as metadata.
// It must not know any kind, route or table, and never uses `.refine()` or `.transform()`: a CRD cannot carry them.
import { z } from 'zod';

/** One CEL rule of a structural schema. `fieldPath` is relative to the node that carries the rule, e.g. `.prompt`. */
export type CelRule = Readonly<{ rule: string; message: string; fieldPath?: string | undefined }>;

/** A CEL rule with its exact message; `fieldPath` moves the error from the parent to the field it is about. */
export function cel(rule: string, message: string, fieldPath?: string): CelRule {
  return fieldPath === undefined ? { rule, message } : { rule, message, fieldPath };
}

/** Metadata that puts CEL rules on a schema node: `z.string().meta(celRules(cel(...)))`. One call per node; a second replaces the first. */
export function celRules(...rules: readonly CelRule[]): { 'x-kubernetes-validations': readonly CelRule[] } {
  return { 'x-kubernetes-validations': rules };
}

/**
 * Transition rule for one field, to be put on the field's parent, so that adding or removing the field is caught too.
 * Source: K9.
 */
export function immutableField(name: string, message: string): CelRule {
  return cel(
    `has(self.${name}) == has(oldSelf.${name}) && (!has(self.${name}) || self.${name} == oldSelf.${name})`,
    message,
    `.${name}`,
  );
}

/** List metadata: entries are identified by one field, so that several writers can own entries. Source: K8. */
export function keyedBy(key: string): Record<string, unknown> {
  return { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': [key] };
}

/** List metadata: a set of scalars. Source: K8. */
export const AS_SET = { 'x-kubernetes-list-type': 'set' } as const;

/** List metadata: replaced as a whole. Source: K8. */
export const ATOMIC = { 'x-kubernetes-list-type': 'atomic' } as const;

/** The pattern of a DNS label (RFC 1123), without its length. */
export const DNS_LABEL_PATTERN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;

/** Name of a Project or Session: a DNS label of at most 46 characters, so that child names are never cut. Source: K3. */
export const DnsLabel46 = z.string().min(1).max(46).regex(DNS_LABEL_PATTERN);

/** A DNS label of at most 63 characters: namespaces, RuntimeClasses, label values. */
export const DnsLabel63 = z.string().min(1).max(63).regex(DNS_LABEL_PATTERN);

/** Name of another Kubernetes object (Secret, PriorityClass, StorageClass): a DNS subdomain of at most 253 characters. */
export const ObjectName = z
  .string()
  .min(1)
  .max(253)
  .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/);

/** Key of a Secret or ConfigMap, at most 253 characters. */
export const SecretKey = z
  .string()
  .min(1)
  .max(253)
  .regex(/^[-._A-Za-z0-9]+$/);

/** A Kubernetes uid: 36 characters. */
export const Uid = z
  .string()
  .length(36)
  .regex(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/);

/** The pattern of slugs: agents, templates, providers, triggers. Source: A87. */
export const SLUG_PATTERN = /^[a-z0-9][a-z0-9_-]{0,127}$/;

/** Name of an agent, template, trigger, connector or provider, at most 128 characters. Source: A87. */
export const Slug = z.string().min(1).max(128).regex(SLUG_PATTERN);

/** The pattern of `provider/model`; the model part may itself contain slashes. */
export const MODEL_NAME_PATTERN = /^[a-z0-9][a-z0-9_-]{0,127}\/[A-Za-z0-9][A-Za-z0-9._:/@+-]*$/;

/** A model named `provider/model`, at most 256 characters. Source: A213. */
export const ModelName = z.string().min(3).max(256).regex(MODEL_NAME_PATTERN);

/** An exact `provider/model`, or `provider/*` for all models of one provider; at most 256 characters. */
export const ModelPattern = z
  .string()
  .min(3)
  .max(256)
  .regex(/^[a-z0-9][a-z0-9_-]{0,127}\/(\*|[A-Za-z0-9][A-Za-z0-9._:/@+-]*)$/);

/** The message of a name with the reserved prefix. */
export const RESERVED_ENV_MESSAGE = 'names that start with BEEUNI_ are reserved';

/** The pattern of environment variable names. Source: A87. */
export const ENV_NAME_PATTERN = /^[A-Z_][A-Z0-9_]{0,63}$/;

/** Name of an environment variable that carries a value into a sandbox, at most 64 characters, never `BEEUNI_…`. Source: A87. */
export const EnvName = z
  .string()
  .min(1)
  .max(64)
  .regex(ENV_NAME_PATTERN)
  .meta(celRules(cel(`!self.startsWith('BEEUNI_')`, RESERVED_ENV_MESSAGE)));

/** A git branch name of at most 200 characters; what git refuses or would read as another ref, the CEL rule refuses. */
export const BranchName = z
  .string()
  .min(1)
  .max(200)
  .meta(
    celRules(
      cel(
        String.raw`!self.matches('[\\x00-\\x20\\x7f~^:?*\\[\\\\]') && !self.matches('(^|/)[.]') && !self.matches('^[-/]') && ` +
          String.raw`!self.matches('[.][.]|//|@[{]|[.]lock(/|$)|[/.]$') && !self.matches('^(@|HEAD|refs/.*)$')`,
        'must be a valid git branch name',
      ),
    ),
  );

/** Whether git takes a text as a branch name: the TypeScript twin of the CEL rule of `BranchName`, for bodies and manifests. */
export function isBranchName(text: string): boolean {
  return (
    text.length > 0 &&
    text.length <= 200 &&
    !/^(@|HEAD|refs\/.*)$/.test(text) &&
    Array.from(text).every((character) => character > ' ' && character !== '\x7f') &&
    !/[~^:?*[\\]|(^|\/)[.]|^[-/]|[.][.]|\/\/|@[{]|[.]lock(\/|$)|[/.]$/.test(text)
  );
}

/** A 40 or 64 digit commit id in lower-case hex. */
export const CommitId = z
  .string()
  .min(40)
  .max(64)
  .regex(/^[0-9a-f]+$/);

/** Reference of a container image: `[registry/]repository[:tag][@digest]`, at most 512 characters. */
export const ImageRef = z
  .string()
  .min(1)
  .max(512)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._:/@-]*$/);

/** An image reference, or a prefix of references that ends in `*`; at most 512 characters. */
export const ImagePattern = z
  .string()
  .min(1)
  .max(512)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._:/@-]*\*?$/);

/** A change of this free text asks for something (sync, restart); at most 64 characters. */
export const ChangeToken = z
  .string()
  .max(64)
  .regex(/^[A-Za-z0-9._:-]*$/);

/** A time in RFC 3339, whole seconds, UTC, e.g. `2026-11-30T12:41:07Z`. Source: K5. */
export const Timestamp = z.iso.datetime().max(32);

/** A duration of a lifecycle in whole seconds; 0 turns the feature off. Source: K6. */
export function durationSeconds(minimum: number, maximum: number) {
  return z.int().min(minimum).max(maximum).meta({ format: 'int64' });
}

/** A whole number with bounds, as int64. Source: K4. */
export function integer(minimum: number, maximum: number) {
  return z.int().min(minimum).max(maximum).meta({ format: 'int64' });
}

/** A number that only grows: generations, attempts. */
export function counter() {
  return integer(0, 1_000_000_000_000_000);
}

/** Money in millionths of a US dollar, 0 to 10^15; absent is unlimited, 0 allows nothing. Source: K5, K6. */
export const MicroUsd = integer(0, 1_000_000_000_000_000);

/** A plain text of bounded length. */
export function text(maxLength: number) {
  return z.string().max(maxLength);
}

/** The pattern of Kubernetes quantities that are not negative: digits, an optional fraction, an optional suffix. */
export const QUANTITY_PATTERN = /^[0-9]{1,15}(\.[0-9]{1,9})?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$/;

/** CEL that turns an int-or-string field into a quantity. */
export function celQuantity(path: string): string {
  return `quantity(string(${path}))`;
}

/** A Kubernetes quantity as text or whole number. Bounded fields use `quantity(min, max)`. */
export function quantity(maximum: string, minimum?: string) {
  const atMost = `${celQuantity('self')}.compareTo(quantity('${maximum}')) <= 0`;
  const atLeast = `${celQuantity('self')}.compareTo(quantity('${minimum}')) >= 0`;
  return z.union([z.string().min(1).max(32).regex(QUANTITY_PATTERN), z.int().min(0).max(1_000_000_000_000_000)]).meta({
    'x-kubernetes-int-or-string': true,
    ...celRules(
      minimum === undefined
        ? cel(atMost, `must be at most ${maximum}`)
        : cel(`${atMost} && ${atLeast}`, `must be between ${minimum} and ${maximum}`),
    ),
  });
}

/** A Kubernetes quantity: text as `500m`, `1.5`, `2Gi`, or a whole number. */
export type Quantity = string | number;

/** A switch that null sets back to what counts without it. */
export const nullableSwitch = z.boolean({ error: 'must be true, false or null' }).nullable();
