// What a statement and a database are to the rest of the control plane: plain values and two functions.
// Must not know pg.

/** One SQL statement with its parameters. `Row` is the shape that its rows have; nothing at run time depends on it. */
export type Statement<Row = unknown> = Readonly<{
  text: string;
  values: readonly unknown[];
  /** Set for hot statements: the server plans them once per connection. At most 63 characters. */
  name?: string;
  readonly $row?: Row;
}>;

/** Runs a statement and gives back its rows. Errors: those of store/errors.ts. */
export type Query = <Row>(statement: Statement<Row>) => Promise<Row[]>;

/** A database: single statements, and transactions that commit when `run` resolves and roll back when it throws. */
export type Database = Readonly<{
  query: Query;
  withTransaction: <T>(run: (query: Query) => Promise<T>) => Promise<T>;
}>;

/** The first row, or undefined. */
export const firstRow = async <Row>(query: Query, statement: Statement<Row>): Promise<Row | undefined> =>
  (await query(statement))[0];
