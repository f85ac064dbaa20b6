package store

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// format names what Export writes: a header, then one row a line.
const format = "permissioncentre/1"

// tables are what moves. Jobs do not: what is due gets new ones.
var tables = []string{"objects", "links", "audit", "applications", "application_ips", "grants", "grant_ips", "history", "pace"}

// serials are the tables whose keys count by themselves.
var serials = []string{"audit", "history"}

type header struct {
	Format string   `json:"format"`
	Tables []string `json:"tables"`
}

type row struct {
	Table  string         `json:"table"`
	Values map[string]any `json:"values"`
}

// Export writes all that is kept, as it is at one moment.
func (s *Store) Export(ctx context.Context, w io.Writer) error {
	out := bufio.NewWriter(w)
	e := json.NewEncoder(out)
	if err := e.Encode(header{format, tables}); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	level := sql.LevelDefault
	if s.Shared() {
		level = sql.LevelRepeatableRead
	}
	tx, err := s.read.BeginTx(ctx, &sql.TxOptions{Isolation: level, ReadOnly: true})
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	for _, table := range tables {
		if err := exportTable(ctx, tx, table, e); err != nil {
			return fmt.Errorf("export %s: %w", table, err)
		}
	}
	return out.Flush()
}

func exportTable(ctx context.Context, tx *sql.Tx, table string, e *json.Encoder) error {
	rows, err := tx.QueryContext(ctx, "SELECT * FROM "+table)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	for rows.Next() {
		values, to := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			to[i] = &values[i]
		}
		if err := rows.Scan(to...); err != nil {
			return err
		}
		r := row{table, map[string]any{}}
		for i, c := range columns {
			if text, ok := values[i].([]byte); ok {
				values[i] = string(text)
			}
			r.Values[c] = values[i]
		}
		if err := e.Encode(r); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Import reads what Export wrote into a store that has nothing yet, all of it
// or nothing.
func (s *Store) Import(ctx context.Context, r io.Reader) error {
	d := json.NewDecoder(bufio.NewReader(r))
	d.UseNumber()
	var h header
	if err := d.Decode(&h); err != nil || h.Format != format {
		return fmt.Errorf("import: this is no export of the permission centre (%s)", format)
	}
	return s.Write(ctx, func(tx Tx) error {
		for _, table := range tables {
			if n, err := tx.count("SELECT COUNT(*) FROM " + table); err != nil {
				return fmt.Errorf("import: %w", err)
			} else if n > 0 {
				return fmt.Errorf("import: the store has %d rows of %s already; import into a new one", n, table)
			}
		}
		for {
			var one row
			if err := d.Decode(&one); err == io.EOF {
				break
			} else if err != nil {
				return fmt.Errorf("import: %w", err)
			}
			if err := tx.insert(one); err != nil {
				return fmt.Errorf("import %s: %w", one.Table, err)
			}
		}
		return tx.continueSerials()
	})
}

func (t Tx) insert(r row) error {
	if !slices.Contains(tables, r.Table) {
		return fmt.Errorf("there is no such table")
	}
	if r.Table == "grants" {
		// The number of a job of the other store.
		r.Values["job"] = json.Number("0")
	}
	var columns []string
	var args []any
	for column, value := range r.Values {
		if strings.Trim(column, "abcdefghijklmnopqrstuvwxyz_") != "" {
			return fmt.Errorf("%q is no column", column)
		}
		if n, ok := value.(json.Number); ok {
			whole, err := n.Int64()
			if err != nil {
				return err
			}
			value = whole
		}
		columns, args = append(columns, column), append(args, value)
	}
	_, err := t.exec("INSERT INTO "+r.Table+" ("+strings.Join(columns, ", ")+") VALUES ("+
		strings.TrimSuffix(strings.Repeat("?, ", len(args)), ", ")+")", args...)
	return err
}

// continueSerials has PostgreSQL count on from what was imported; SQLite does.
func (t Tx) continueSerials() error {
	if !t.dialect.numbered {
		return nil
	}
	for _, table := range serials {
		if _, err := t.exec("SELECT setval(pg_get_serial_sequence('" + table + "', 'id'), (SELECT COALESCE(MAX(id), 0) + 1 FROM " + table + "), false)"); err != nil {
			return err
		}
	}
	return nil
}
