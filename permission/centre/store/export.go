package store

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// exportFormat is the format of Export: a header line, one line for each row, and a last line with their number.
// earlierFormat has no last line.
const (
	exportFormat  = "permissioncentre/2"
	earlierFormat = "permissioncentre/1"
)

// exportTables are the exported tables.
var exportTables = []string{"objects", "links", "audit", "applications", "application_ips", "grants", "grant_ips", "history", "pace", "ended_pods", "clusters"}

// serialTables are the tables with an auto-increment key.
var serialTables = []string{"audit", "history"}

// removedColumns are columns of grants in exports of earlier versions that are not
// imported. lease_until was the time at which the run of a step expires, which is now in column
// due.
var removedColumns = []string{"step", "job", "lease_until"}

type exportHeader struct {
	Format string   `json:"format"`
	Tables []string `json:"tables"`
}

// exportLine is a row, or the last line, which has only Rows.
type exportLine struct {
	Table  string         `json:"table,omitempty"`
	Values map[string]any `json:"values,omitempty"`
	Rows   *int           `json:"rows,omitempty"`
}

// Export writes a consistent snapshot of all tables.
func (s *Store) Export(ctx context.Context, w io.Writer) error {
	out := bufio.NewWriter(w)
	e := json.NewEncoder(out)
	if err := e.Encode(exportHeader{exportFormat, exportTables}); err != nil {
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
	if err := (Tx{View{q: tx, dialect: s.dialect, ctx: ctx}}).mayWait(); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	rows := 0
	for _, table := range exportTables {
		n, err := exportTable(ctx, tx, table, e)
		if err != nil {
			return fmt.Errorf("export %s: %w", table, err)
		}
		rows += n
	}
	if err := e.Encode(exportLine{Rows: &rows}); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return out.Flush()
}

// mayWait lets the transaction wait for the reader of an export or the writer of an import.
func (t Tx) mayWait() error {
	if !t.dialect.numbered {
		return nil
	}
	_, err := t.exec("SET LOCAL idle_in_transaction_session_timeout = 0")
	return err
}

func exportTable(ctx context.Context, tx *sql.Tx, table string, e *json.Encoder) (exported int, err error) {
	rows, err := tx.QueryContext(ctx, "SELECT * FROM "+table)
	if err != nil {
		return 0, err
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return 0, err
	}
	for ; rows.Next(); exported++ {
		values, to := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			to[i] = &values[i]
		}
		if err := rows.Scan(to...); err != nil {
			return exported, err
		}
		r := exportLine{Table: table, Values: map[string]any{}}
		for i, c := range columns {
			if text, ok := values[i].([]byte); ok {
				values[i] = string(text)
			}
			r.Values[c] = values[i]
		}
		if err := e.Encode(r); err != nil {
			return exported, err
		}
	}
	return exported, rows.Err()
}

// Import reads an export into an empty store, in one transaction.
func (s *Store) Import(ctx context.Context, r io.Reader) error {
	d := json.NewDecoder(bufio.NewReader(r))
	d.UseNumber()
	var h exportHeader
	if err := d.Decode(&h); err != nil || h.Format != exportFormat && h.Format != earlierFormat {
		return fmt.Errorf("import: input is not an export of the permission centre in format %s or %s", exportFormat, earlierFormat)
	}
	return s.Write(ctx, func(tx Tx) error {
		if err := tx.mayWait(); err != nil {
			return fmt.Errorf("import: %w", err)
		}
		for _, table := range exportTables {
			if n, err := tx.count("SELECT COUNT(*) FROM " + table); err != nil {
				return fmt.Errorf("import: %w", err)
			} else if n > 0 {
				return fmt.Errorf("import: the store already has %d rows in %s; use an empty database", n, table)
			}
		}
		rows, end, err := tx.importRows(d)
		if err != nil {
			return err
		}
		if h.Format == exportFormat && (end == nil || *end != rows) {
			return fmt.Errorf("import: the export is incomplete: %d rows, without a last line that has this number", rows)
		}
		return tx.advanceSequences()
	})
}

// importRows inserts the rows up to the end of the input, and returns their number and that of the last line.
func (t Tx) importRows(d *json.Decoder) (rows int, end *int, err error) {
	for {
		var line exportLine
		if err := d.Decode(&line); err == io.EOF {
			return rows, end, nil
		} else if err != nil {
			return rows, end, fmt.Errorf("import: %w", err)
		}
		if end != nil {
			return rows, end, fmt.Errorf("import: the export continues after its last line")
		}
		if line.Rows != nil {
			end = line.Rows
			continue
		}
		if err := t.insert(line); err != nil {
			return rows, end, fmt.Errorf("import %s: %w", line.Table, err)
		}
		rows++
	}
}

func (t Tx) insert(r exportLine) error {
	if !slices.Contains(exportTables, r.Table) {
		return fmt.Errorf("unknown table")
	}
	if len(r.Values) == 0 {
		return fmt.Errorf("a row without values")
	}
	if r.Table == "grants" {
		if until, ok := r.Values["lease_until"]; ok && until != json.Number("0") {
			r.Values["due"] = until
		}
		for _, column := range removedColumns {
			delete(r.Values, column)
		}
	}
	var columns []string
	var args []any
	// In their order, so that the statements of a table have one text.
	for _, column := range slices.Sorted(maps.Keys(r.Values)) {
		value := r.Values[column]
		if strings.Trim(column, "abcdefghijklmnopqrstuvwxyz_") != "" {
			return fmt.Errorf("invalid column name %q", column)
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

// advanceSequences sets the PostgreSQL sequences above the imported ids; SQLite
// does so itself.
func (t Tx) advanceSequences() error {
	if !t.dialect.numbered {
		return nil
	}
	for _, table := range serialTables {
		if _, err := t.exec("SELECT setval(pg_get_serial_sequence('" + table + "', 'id'), (SELECT COALESCE(MAX(id), 0) + 1 FROM " + table + "), false)"); err != nil {
			return err
		}
	}
	return nil
}
