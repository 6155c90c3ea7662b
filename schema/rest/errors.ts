// The error answer of every route but the gateway's. Source: 20-control-plane §2.
import { z } from 'zod';
import { PROBLEMS, type ProblemCode } from '../problem.ts';

/** `{"error": {code, message, details?, requestId}}`. */
export const errorBody = z.object({
  error: z.object({
    code: z.enum(Object.keys(PROBLEMS) as [ProblemCode, ...ProblemCode[]]),
    message: z.string(),
    details: z.record(z.string(), z.unknown()).optional(),
    requestId: z.string(),
  }),
});
