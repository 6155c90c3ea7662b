// What a harness asks people, in words, and the answers as they are typed. Pure but for the calls. Source: A116 to A123.
import { type HumanRequestView, listRequestsRoute } from '#schema/rest/requests.ts';
import type { Api, ObjectName } from './connection/api.ts';
import { CommandError, EXIT } from './failure.ts';
import { plainLine } from './plain-text.ts';
import { readPages } from './print-page.ts';

type Fields = Readonly<Record<string, unknown>>;
const fieldsOf = (value: unknown): Fields => (typeof value === 'object' && value !== null ? (value as Fields) : {});
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** One line that says what is asked. */
export const requestText = ({ kind, data }: Pick<HumanRequestView, 'kind' | 'data'>): string => {
  if (kind === 'permission') {
    const patterns = Array.isArray(data['patterns']) ? data['patterns'].map(textOf).join(', ') : '';
    return plainLine(`${textOf(data['permission'])} ${textOf(fieldsOf(data['metadata'])['command']) || patterns}`, 200);
  }
  const questions = Array.isArray(data['questions']) ? data['questions'] : [];
  return plainLine(questions.map((entry: unknown) => textOf(fieldsOf(entry)['question'])).join(' / '), 200);
};

/** Number of questions of a request. */
export const questionCount = (data: Fields): number =>
  Array.isArray(data['questions']) ? data['questions'].length : 1;

/**
 * The answer to the question at a place: a text whose parts between commas are all labels of it are those choices, any other text is
 * one answer.
 */
export const choicesOf = (data: Fields, at: number, answer: string): string[] => {
  const questions = Array.isArray(data['questions']) ? data['questions'] : [];
  const options = fieldsOf(questions[at])['options'];
  const labels = Array.isArray(options) ? options.map((option: unknown) => textOf(fieldsOf(option)['label'])) : [];
  const parts = answer.split(',').map((part) => part.trim());
  return parts.every((part) => labels.includes(part)) ? parts : [answer.trim()];
};

/** What a typed line says to a permission; undefined when it says something else. */
export const readPermission = (line: string): 'once' | 'always' | 'reject' | undefined => {
  const word = line.trim().toLowerCase();
  if (['o', 'once', 'y', 'yes'].includes(word)) return 'once';
  if (['a', 'always'].includes(word)) return 'always';
  return ['r', 'reject', 'n', 'no'].includes(word) ? 'reject' : undefined;
};

/** Everything that is open and that the person may answer. */
export const openRequests = async (api: Api): Promise<readonly HumanRequestView[]> => {
  const client = await api.client();
  return readPages(async (query) => (await client.call(listRequestsRoute, { query })).body);
};

/** The request that is meant: the one of the id, or the only open one of its kind. Errors: CommandError. */
export const findRequest = async (
  api: Api,
  session: ObjectName,
  kind: HumanRequestView['kind'],
  id: string | undefined,
): Promise<HumanRequestView> => {
  const open = (await openRequests(api)).filter(
    (request) =>
      request.kind === kind &&
      request.namespace === session.namespace &&
      request.session === session.name &&
      (id === undefined || request.id === id),
  );
  const [only, another] = open;
  if (only === undefined) {
    const which = id === undefined ? '' : ` ${id}`;
    throw new CommandError(EXIT.notFound, `session ${session.name} has no open ${kind}${which}`, 'beeuni requests');
  }
  if (another === undefined) return only;
  const ids = open.map((request) => request.id).join(', ');
  throw new CommandError(EXIT.refused, `session ${session.name} has several: ${ids}`, 'name one with --id');
};
