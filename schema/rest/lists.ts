// Cursor-paged lists. Source: 20-control-plane §2.
import { z } from 'zod';

/** Query of every list: `limit` 1 to 200, `cursor` as the last page gave it. */
export const pageQuery = z.object({
  limit: z.coerce.number().int().min(1).max(200).default(50),
  cursor: z.string().max(512).optional(),
});

/** Text of a query that a database is asked for: no control characters. */
export const queryText = z
  .string()
  .min(1)
  .max(256)
  // oxlint-disable-next-line no-control-regex -- these are what must not be there
  .regex(/^[^\u0000-\u001f\u007f-\u009f]+$/, 'must not contain control characters');

/** One page; `cursor` is null on the last one. */
export const pageOf = <T extends z.ZodType>(item: T) =>
  z.object({ items: z.array(item), cursor: z.string().nullable() });

/** Params of one project or session. */
export const objectParams = z.object({
  namespace: z
    .string()
    .regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/, 'must be a lower-case DNS label of at most 63 characters'),
  name: z
    .string()
    .regex(/^[a-z0-9]([-a-z0-9]{0,44}[a-z0-9])?$/, 'must be a lower-case DNS label of at most 46 characters'),
});
