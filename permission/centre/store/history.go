package store

import (
	"database/sql"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// AddHistory records a change of state.
func (t Tx) AddHistory(application string, e api.HistoryEntry) error {
	_, err := t.exec("INSERT INTO history (application, time, permission, state_from, state_to, attempt, reason, message, who) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
		application, micros(e.Time), e.Permission, e.From, e.To, e.Attempt, e.Reason, e.Message, e.Who)
	return err
}

// History of an application, oldest first; the last limit entries.
func (v View) History(application string, limit int) ([]api.HistoryEntry, error) {
	var entries []api.HistoryEntry
	err := v.each(func(rows *sql.Rows) error {
		var e api.HistoryEntry
		var at int64
		err := rows.Scan(&at, &e.Permission, &e.From, &e.To, &e.Attempt, &e.Reason, &e.Message, &e.Who)
		e.Time = fromMicros(at)
		entries = append(entries, e)
		return err
	}, `SELECT time, permission, state_from, state_to, attempt, reason, message, who FROM
		(SELECT * FROM history WHERE application = ? ORDER BY id DESC LIMIT ?) AS last ORDER BY id`, application, limit)
	return entries, err
}

// AddAudit records who changed what.
func (t Tx) AddAudit(at time.Time, e api.AuditEntry) error {
	_, err := t.exec("INSERT INTO audit (time, who, verb, kind, name, before, after) VALUES (?, ?, ?, ?, ?, ?, ?)",
		micros(at), e.Who, e.Verb, e.Kind, e.Name, e.Before, e.After)
	return err
}

// Audit lists a page, newest first: entries below before (0: from the newest).
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

// Prune forgets history and audit of before a time, and applications that
// ended in Revoked before it.
func (t Tx) Prune(before time.Time) error {
	for _, statement := range []string{
		"DELETE FROM audit WHERE time < ?",
		"DELETE FROM history WHERE application IN (SELECT id FROM applications WHERE state = 'Revoked' AND updated < ?)",
		"DELETE FROM grant_ips WHERE application IN (SELECT id FROM applications WHERE state = 'Revoked' AND updated < ?)",
		"DELETE FROM grants WHERE application IN (SELECT id FROM applications WHERE state = 'Revoked' AND updated < ?)",
		"DELETE FROM application_ips WHERE application IN (SELECT id FROM applications WHERE state = 'Revoked' AND updated < ?)",
		"DELETE FROM applications WHERE state = 'Revoked' AND updated < ?",
	} {
		if _, err := t.exec(statement, micros(before)); err != nil {
			return err
		}
	}
	return nil
}
