// Answers of people to what a harness asks, between control plane and daemon. The row in the control plane is the truth; a
// call to the daemon only saves time. Must not know how a harness asks. Source: A119 to A123, 20-control-plane §9.
import { z } from 'zod';
import { defineRoute } from '../define-route.ts';

/** What a harness asks people. */
export const requestKind = z.enum(['permission', 'question']);

/** The answer to a permission. `always` lasts for the session and never beats a `deny`. Source: A119. */
export const permissionAnswer = z.object({
  reply: z.enum(['once', 'always', 'reject']),
  message: z.string().max(4_096).optional().describe('what the model may read of a refusal'),
});

/** The answer to questions: one list of texts per question, or a dismissal. Source: A120. */
export const questionAnswer = z.union([
  z.object({
    answers: z
      .array(z.array(z.string().max(4_096)).max(32))
      .min(1)
      .max(32),
  }),
  z.object({ reject: z.literal(true) }),
]);

/** One answer as it is stored and delivered. */
export const humanAnswer = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('permission'), ...permissionAnswer.shape }),
  z.object({ kind: z.literal('question'), answers: z.array(z.array(z.string().max(4_096))).nullable() }),
]);

/** An answer with the id of its request. */
export const deliveredAnswer = z.object({ id: z.string().max(128), answer: humanAnswer });

/**
 * `POST /beeuni/requests/{id}` on port 8000: answers an open request. The same answer again is the same answer;
 * `ended`: the request has another answer, or its turn is over. 404 `request_not_found`: this daemon never asked it.
 */
export const answerRequestRoute = defineRoute({
  operationId: 'answerRequest',
  listener: 'daemon',
  method: 'POST',
  path: '/beeuni/requests/:id',
  summary: 'Answer a permission or question',
  auth: { kind: 'control-plane' },
  params: z.object({ id: z.string().min(1).max(128) }),
  body: humanAnswer,
  responses: { 200: z.object({ state: z.enum(['taken', 'ended']) }) },
});

/** See humanAnswer. */
export type HumanAnswerWire = z.output<typeof humanAnswer>;
/** See deliveredAnswer. */
export type DeliveredAnswer = z.output<typeof deliveredAnswer>;
/** See requestKind. */
export type RequestKind = z.output<typeof requestKind>;
