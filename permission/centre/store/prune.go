package store

import "time"

// Prune deletes audit entries and ended pods older than before, and applications
// that are Revoked since before it, with their history.
func (t Tx) Prune(before time.Time) error {
	for _, statement := range []string{
		"DELETE FROM audit WHERE time < ?",
		"DELETE FROM ended_pods WHERE ended < ?",
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
