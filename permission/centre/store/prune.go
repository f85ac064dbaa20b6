package store

import (
	"context"
	"database/sql"
	"time"
)

// pruneSize is the number of rows of a table that one transaction of Prune deletes, because other writes to SQLite wait for it.
const pruneSize = 100

// Prune deletes the audit entries from before the limit, and the pods that ended before it. It
// also deletes the applications that became Revoked before it, with their history, unless a report
// listed their pod since: without an application, a pod that ends counts as a leak.
func (s *Store) Prune(ctx context.Context, limit time.Time) error {
	for {
		var deleted int64
		err := s.WriteInBackground(ctx, func(tx Tx) (err error) {
			deleted, err = tx.prunePart(limit)
			return err
		})
		if err != nil || deleted == 0 {
			return err
		}
	}
}

// revoked selects Revoked applications. The expression keeps SQLite from the index of the state, which has too many of them.
const revoked = "state || '' = 'Revoked'"

// prunePart deletes at most pruneSize audit entries, ended pods and applications, and returns their number. It skips
// applications that other transactions have locked.
func (t Tx) prunePart(limit time.Time) (deleted int64, err error) {
	for _, statement := range []string{
		"DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE time < ? LIMIT ?)",
		"DELETE FROM ended_pods WHERE (cluster, pod_uid) IN (SELECT cluster, pod_uid FROM ended_pods WHERE ended < ? LIMIT ?)",
	} {
		n, err := t.exec(statement, micros(limit), pruneSize)
		if err != nil {
			return 0, err
		}
		deleted += n
	}
	var ids []string
	if err := t.each(func(rows *sql.Rows) error {
		var id string
		err := rows.Scan(&id)
		ids = append(ids, id)
		return err
	}, "SELECT id FROM applications a WHERE "+revoked+" AND updated < ? AND listed < ? LIMIT ?"+t.dialect.skipLocked, micros(limit), micros(limit), pruneSize); err != nil {
		return 0, err
	}
	among, arg := t.dialect.in("application", ids)
	for _, table := range []string{"history", "grant_ips", "grants", "application_ips"} {
		if _, err := t.exec("DELETE FROM "+table+" WHERE "+among, arg); err != nil {
			return 0, err
		}
	}
	among, arg = t.dialect.in("id", ids)
	n, err := t.exec("DELETE FROM applications WHERE "+among, arg)
	return deleted + n, err
}

// SetListed stores that a report listed pods of a cluster, at their Revoked applications. It skips
// applications that other transactions have locked: the next report lists their pods again.
func (t Tx) SetListed(cluster string, uids []string, at time.Time) error {
	where, arg := t.dialect.in("pod_uid", uids)
	_, err := t.exec("UPDATE applications SET listed = ? WHERE id IN (SELECT id FROM applications a WHERE cluster = ? AND "+where+" AND "+revoked+t.dialect.skipLocked+")",
		micros(at), cluster, arg)
	return err
}
