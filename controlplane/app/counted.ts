// Counts how calls end, for metrics. Must not know what is called or how it is counted.
import { BeeuniError } from '#base/errors.ts';

/**
 * Goes on with the work, and tells once how it ended: by what `resultOf` says of its value (`ok` when absent), else by the
 * code of its error; `internal` for a fault of ours.
 */
export const counted = async <T>(
  work: Promise<T>,
  count: (result: string) => void,
  resultOf: (value: T) => string = () => 'ok',
): Promise<T> => {
  try {
    const value = await work;
    count(resultOf(value));
    return value;
  } catch (error) {
    count(error instanceof BeeuniError ? error.code : 'internal');
    throw error;
  }
};
