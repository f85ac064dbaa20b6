package store

import (
	"database/sql"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// AddAudit records a change of a registered object or of a cluster.
func (t Tx) AddAudit(at time.Time, e api.AuditEntry) error {
	_, err := t.exec("INSERT INTO audit (time, who, verb, kind, name, before, after) VALUES (?, ?, ?, ?, ?, ?, ?)",
		micros(at), e.Who, e.Verb, e.Kind, e.Name, e.Before, e.After)
	return err
}

// Audit lists a page of changes, newest first: ids below before, or all if it is 0.
func (v View) Audit(kind, name, who string, before int64, limit int) ([]api.AuditEntry, error) {
	statement, args := "SELECT id, time, who, verb, kind, name, before, after FROM audit WHERE 1 = 1", []any{}
	for _, c := range []struct{ column, value string }{{"kind", kind}, {"name", name}, {"who", who}} {
		if c.value != "" {
			statement, args = statement+" AND "+c.column+" = ?", append(args, c.value)
		}
	}
	if before > 0 {
		statement, args = statement+" AND id < ?", append(args, before)
	}
	var entries []api.AuditEntry
	err := v.each(func(rows *sql.Rows) error {
		var e api.AuditEntry
		var at int64
		err := rows.Scan(&e.ID, &at, &e.Who, &e.Verb, &e.Kind, &e.Name, &e.Before, &e.After)
		e.Time = fromMicros(at).Format(time.RFC3339Nano)
		entries = append(entries, e)
		return err
	}, statement+" ORDER BY id DESC LIMIT ?", append(args, limit)...)
	return entries, err
}
