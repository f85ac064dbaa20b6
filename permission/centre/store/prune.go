package store

import "time"

// Prune deletes audit entries and ended pods that are older than before. It also
// deletes applications that were Revoked earlier than before, with their history.
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
