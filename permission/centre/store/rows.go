package store

import (
	"fmt"
	"strings"
)

// column is a column of rows that are written with one statement.
type column struct {
	name string
	// number: the type is an integer, otherwise text.
	number bool
}

func text(names string) (columns []column) {
	for name := range strings.FieldsSeq(names) {
		columns = append(columns, column{name: strings.TrimPrefix(name, "#"), number: strings.HasPrefix(name, "#")})
	}
	return columns
}

// rowsStatement writes any number of rows. PostgreSQL gets all of them in one round trip;
// SQLite, which needs none, executes a prepared statement for each row.
type rowsStatement struct {
	columns []column
	// one writes a row with a placeholder for each column. many writes rows from the
	// arrays of the columns, which the statement has in place of %s.
	one, many string
}

// insertRows returns the statement that inserts rows. The names of integer columns begin
// with #. suffix is the rest of the statement.
func insertRows(table, columns, suffix string) rowsStatement {
	c := text(columns)
	names := make([]string, len(c))
	for i := range c {
		names[i] = c[i].name
	}
	into := "INSERT INTO " + table + " (" + strings.Join(names, ", ") + ") "
	return rowsStatement{
		columns: c,
		one:     into + "VALUES (" + strings.TrimSuffix(strings.Repeat("?, ", len(c)), ", ") + ")" + suffix,
		many:    into + "SELECT * FROM %s" + suffix,
	}
}

// arrays returns unnest with a placeholder for the array of each column.
func (r rowsStatement) arrays() string {
	types := make([]string, len(r.columns))
	for i, c := range r.columns {
		if types[i] = "?::text[]"; c.number {
			types[i] = "?::bigint[]"
		}
	}
	return "unnest(" + strings.Join(types, ", ") + ")"
}

// write writes rows, whose values are strings or int64, and returns their number.
func (r rowsStatement) write(t Tx, rows [][]any) (written int64, err error) {
	if len(rows) == 0 {
		return 0, nil
	}
	if !t.dialect.numbered {
		for _, row := range rows {
			n, err := t.exec(r.one, row...)
			if err != nil {
				return written, err
			}
			written += n
		}
		return written, nil
	}
	args := make([]any, len(r.columns))
	for i, c := range r.columns {
		if c.number {
			args[i] = arrayOf[int64](rows, i)
		} else {
			args[i] = arrayOf[string](rows, i)
		}
	}
	return t.exec(fmt.Sprintf(r.many, r.arrays()), args...)
}

func arrayOf[T any](rows [][]any, column int) []T {
	array := make([]T, len(rows))
	for i, row := range rows {
		array[i], _ = row[column].(T)
	}
	return array
}
