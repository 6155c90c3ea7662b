// Reads the shape of a database from its catalogue: columns for a test, and the whole as text for the golden dump, as
// the embedded package has no pg_dump. Must not know any table.
import type { Query, Statement } from './statement.ts';

/** One column of a table. `type` is Postgres' own word, for example `timestamp with time zone`. */
export type Column = Readonly<{
  table_name: string;
  name: string;
  type: string;
  not_null: boolean;
  definition: string;
}>;

const columns = (): Statement<Column> => ({
  text: `select c.relname as table_name, a.attname as name, format_type(a.atttypid, a.atttypmod) as type, a.attnotnull as not_null,
      format_type(a.atttypid, a.atttypmod)
        || case when a.attnotnull then ' not null' else '' end
        || case when a.attidentity = 'a' then ' generated always as identity' else '' end
        || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '') as definition
    from pg_class c join pg_namespace s on s.oid = c.relnamespace and s.nspname = 'public'
      join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
    where c.relkind = 'r' order by c.relname, a.attnum`,
  values: [],
});

type Item = Readonly<{ table_name: string; definition: string }>;

const tableOptions = (): Statement<Item> => ({
  text: `select c.relname as table_name, array_to_string(c.reloptions, ', ') as definition
    from pg_class c join pg_namespace s on s.oid = c.relnamespace and s.nspname = 'public'
    where c.relkind = 'r' and c.reloptions is not null order by 1`,
  values: [],
});

/** Constraints but "not null", which the columns have. */
const constraints = (): Statement<Item> => ({
  text: `select r.relname as table_name, 'constraint ' || c.conname || ' ' || pg_get_constraintdef(c.oid) as definition
    from pg_constraint c join pg_class r on r.oid = c.conrelid
      join pg_namespace s on s.oid = r.relnamespace and s.nspname = 'public'
    where c.contype <> 'n' order by r.relname, c.contype, c.conname`,
  values: [],
});

const indexes = (): Statement<Item> => ({
  text: `select i.tablename as table_name, i.indexdef as definition from pg_indexes i
    where i.schemaname = 'public' and not exists (select 1 from pg_constraint c where c.conname = i.indexname)
    order by i.tablename, i.indexname`,
  values: [],
});

const triggers = (): Statement<Item> => ({
  text: `select r.relname as table_name, pg_get_triggerdef(t.oid) as definition
    from pg_trigger t join pg_class r on r.oid = t.tgrelid where not t.tgisinternal order by r.relname, t.tgname`,
  values: [],
});

const functions = (): Statement<Readonly<{ definition: string }>> => ({
  text: `select pg_get_functiondef(p.oid) as definition from pg_proc p
    join pg_namespace s on s.oid = p.pronamespace and s.nspname = 'public' order by p.proname`,
  values: [],
});

/** Sequences that belong to no column. */
const sequences = (): Statement<Readonly<{ name: string }>> => ({
  text: `select c.relname as name from pg_class c join pg_namespace s on s.oid = c.relnamespace and s.nspname = 'public'
    where c.relkind = 'S' and not exists (select 1 from pg_depend d where d.objid = c.oid and d.deptype in ('a', 'i'))
    order by 1`,
  values: [],
});

/** Every column of every table of ours, in order. */
export const readColumns = (query: Query): Promise<Column[]> => query(columns());

/** The whole shape as text: the same for the same migrations, whatever the order of their creation. */
export const describeDatabase = async (query: Query): Promise<string> => {
  const byTable = Map.groupBy(await readColumns(query), (column) => column.table_name);
  const options = new Map((await query(tableOptions())).map((item) => [item.table_name, item.definition]));
  const constraintsOf = Map.groupBy(await query(constraints()), (item) => item.table_name);
  const lines = ['-- The database after all migrations, read from its catalogue. Written by: make schema', ''];
  for (const { name } of await query(sequences())) lines.push(`create sequence ${name};`, '');
  for (const { definition } of await query(functions())) lines.push(`${definition.trim()};`, '');
  for (const [table, own] of byTable) {
    const parts = [
      ...own.map((column) => `${column.name} ${column.definition}`),
      ...(constraintsOf.get(table) ?? []).map((item) => item.definition),
    ];
    const ending = options.has(table) ? `) with (${options.get(table)});` : ');';
    lines.push(`create table ${table} (`, parts.map((part) => `  ${part}`).join(',\n'), ending, '');
  }
  for (const { definition } of await query(indexes())) lines.push(`${definition};`);
  for (const { definition } of await query(triggers())) lines.push(`${definition};`);
  return `${lines.join('\n')}\n`;
};
