package store

import (
	"slices"
	"strings"
	"time"
)

// Prune deletes the audit entries from before the limit, and the pods that ended before it. It
// also deletes the applications that became Revoked before it, with their history, unless a report
// listed their pod since: without an application, a pod that ends counts as a leak.
func (t Tx) Prune(limit time.Time) error {
	const revoked = "state = 'Revoked' AND updated < ? AND listed < ?"
	for _, statement := range []string{
		"DELETE FROM audit WHERE time < ?",
		"DELETE FROM ended_pods WHERE ended < ?",
		"DELETE FROM history WHERE application IN (SELECT id FROM applications WHERE " + revoked + ")",
		"DELETE FROM grant_ips WHERE application IN (SELECT id FROM applications WHERE " + revoked + ")",
		"DELETE FROM grants WHERE application IN (SELECT id FROM applications WHERE " + revoked + ")",
		"DELETE FROM application_ips WHERE application IN (SELECT id FROM applications WHERE " + revoked + ")",
		"DELETE FROM applications WHERE " + revoked,
	} {
		args := slices.Repeat([]any{micros(limit)}, strings.Count(statement, "?"))
		if _, err := t.exec(statement, args...); err != nil {
			return err
		}
	}
	return nil
}

// SetListed stores that a report listed pods of a cluster, at their Revoked applications. It skips
// applications that other transactions have locked: the next report lists their pods again. SQLite
// would use the index of the state, and read all Revoked applications, if it could.
func (t Tx) SetListed(cluster string, uids []string, at time.Time) error {
	where, arg := t.dialect.in("pod_uid", uids)
	_, err := t.exec("UPDATE applications SET listed = ? WHERE id IN (SELECT id FROM applications a WHERE cluster = ? AND "+where+" AND state || '' = 'Revoked'"+t.dialect.skipLocked+")",
		micros(at), cluster, arg)
	return err
}
