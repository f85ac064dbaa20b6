package store

import "time"

// Prune deletes the audit entries from before the limit, and the pods that ended before it. It
// also deletes the applications that became Revoked before it, with their history.
func (t Tx) Prune(limit time.Time) error {
	for _, statement := range []string{
		"DELETE FROM audit WHERE time < ?",
		"DELETE FROM ended_pods WHERE ended < ?",
		"DELETE FROM history WHERE application IN (SELECT id FROM applications WHERE state = 'Revoked' AND updated < ?)",
		"DELETE FROM grant_ips WHERE application IN (SELECT id FROM applications WHERE state = 'Revoked' AND updated < ?)",
		"DELETE FROM grants WHERE application IN (SELECT id FROM applications WHERE state = 'Revoked' AND updated < ?)",
		"DELETE FROM application_ips WHERE application IN (SELECT id FROM applications WHERE state = 'Revoked' AND updated < ?)",
		"DELETE FROM applications WHERE state = 'Revoked' AND updated < ?",
	} {
		if _, err := t.exec(statement, micros(limit)); err != nil {
			return err
		}
	}
	return nil
}
