package store

import (
	"database/sql"
	"time"
)

// NextDue returns when the next step of each provider is due, for the providers
// that have one.
func (v View) NextDue() (map[string]time.Time, error) {
	next := map[string]time.Time{}
	err := v.each(func(rows *sql.Rows) error {
		var provider string
		var due sql.NullInt64
		err := rows.Scan(&provider, &due)
		if due.Valid {
			next[provider] = fromMicros(due.Int64)
		}
		return err
	}, "SELECT name, (SELECT MIN(due) FROM grants WHERE provider = objects.name AND due > 0) FROM objects WHERE kind = ?", KindProvider)
	return next, err
}

// CountDue counts the steps of a provider that are due, up to limit.
func (v View) CountDue(provider string, now time.Time, limit int) (int, error) {
	return v.count("SELECT COUNT(*) FROM (SELECT 1 FROM grants WHERE provider = ? AND due > 0 AND due <= ? LIMIT ?) AS first_rows", provider, micros(now), limit)
}

// DueStep is a grant with a step that is due.
type DueStep struct {
	Application string
	Ordinal     int
}

// DueSteps returns the steps of a provider that have been due for the longest time, at most
// limit, and locks their applications until the transaction ends. It skips applications that
// other transactions have locked.
func (t Tx) DueSteps(provider string, now time.Time, limit int) ([]DueStep, error) {
	var steps []DueStep
	err := t.each(func(rows *sql.Rows) error {
		var s DueStep
		err := rows.Scan(&s.Application, &s.Ordinal)
		steps = append(steps, s)
		return err
	}, `SELECT g.application, g.ordinal FROM grants g JOIN applications a ON a.id = g.application
		WHERE g.provider = ? AND g.due > 0 AND g.due <= ? ORDER BY g.due LIMIT ?`+t.dialect.skipLocked, provider, micros(now), limit)
	return steps, err
}

// PostponeStep sets when a step that is due now is due again, without reading its grant.
func (t Tx) PostponeStep(application string, ordinal int, now, due time.Time) error {
	_, err := t.exec("UPDATE grants SET due = ? WHERE application = ? AND ordinal = ? AND due > 0 AND due <= ?", micros(due), application, ordinal, micros(now))
	return err
}

// ProvidersOfUnscheduledLeaks lists the providers of Leaked grants that have no next step. It reads
// at most one grant of each provider: MIN makes PostgreSQL use the index, which LIMIT 1 does not.
func (v View) ProvidersOfUnscheduledLeaks() ([]string, error) {
	var providers []string
	err := v.each(func(rows *sql.Rows) error {
		var provider string
		err := rows.Scan(&provider)
		providers = append(providers, provider)
		return err
	}, `SELECT name FROM objects WHERE kind = ? AND
		(SELECT MIN(application) FROM grants WHERE provider = objects.name AND state = 'Leaked' AND due = 0) IS NOT NULL ORDER BY name`, KindProvider)
	return providers, err
}

// ScheduleLeaks schedules a next step at due for at most limit Leaked grants of a provider that have
// no next step. It skips applications that other transactions have locked. The order makes the
// database use the index, and read no leaks that are scheduled.
func (t Tx) ScheduleLeaks(provider string, due time.Time, limit int) error {
	_, err := t.exec(`UPDATE grants SET due = ? WHERE state = 'Leaked' AND due = 0 AND (application, ordinal) IN (
		SELECT g.application, g.ordinal FROM grants g JOIN applications a ON a.id = g.application
		WHERE g.provider = ? AND g.state = 'Leaked' AND g.due = 0 ORDER BY g.application LIMIT ?`+t.dialect.skipLocked+`)`, micros(due), provider, limit)
	return err
}

// ResumeSteps makes steps due now that are due later, and corrects Since and Began of their grants, if one of these times is
// after another time, which is in the future. It does not find steps of other grants that were postponed while the clock was ahead,
// and no step that is in progress. It skips applications that other transactions have locked.
func (t Tx) ResumeSteps(now, after time.Time) error {
	_, err := t.exec(`UPDATE grants SET due = ?, since = CASE WHEN since > ? THEN ? ELSE since END, began = CASE WHEN began > ? THEN ? ELSE began END
		WHERE (application, ordinal) IN (
		SELECT g.application, g.ordinal FROM grants g JOIN applications a ON a.id = g.application
		WHERE g.provider IN (SELECT name FROM objects WHERE kind = ?) AND g.due > 0 AND g.due > ? AND g.lease = '' AND (g.since > ? OR g.began > ?)`+t.dialect.skipLocked+`)`,
		micros(now), micros(now), micros(now), micros(now), micros(now), KindProvider, micros(now), micros(after), micros(after))
	return err
}

// RetryLeaks makes the retries of Leaked grants due now, if they are scheduled later: of the grants of applications that have
// the provider. It skips applications that other transactions have locked. The sum with 0 keeps
// PostgreSQL from reading all steps of the provider that are scheduled.
func (t Tx) RetryLeaks(applications []string, provider string, now time.Time) error {
	among, arg := t.dialect.in("a.id", applications)
	_, err := t.exec(`UPDATE grants SET due = ? WHERE application IN (SELECT a.id FROM applications a WHERE `+among+t.dialect.skipLocked+`)
		AND provider = ? AND state = 'Leaked' AND lease = '' AND due + 0 > ?`, micros(now), arg, provider, micros(now))
	return err
}

// OverdueGrants lists grants of a provider that wait for a call in an attempt that
// began before a time.
func (v View) OverdueGrants(provider string, began time.Time, limit int) ([]Grant, error) {
	return v.grants("SELECT "+grantColumns+` FROM grants WHERE provider = ? AND due > 0 AND lease = '' AND began < ? AND state IN ('Requested', 'Applying')
		AND EXISTS (SELECT 1 FROM applications WHERE id = grants.application AND going = 0) ORDER BY due LIMIT ?`, provider, micros(began), limit)
}

// AnsweredSince reports whether a provider has granted or denied a permission since a time.
func (v View) AnsweredSince(provider string, since time.Time) (bool, error) {
	n, err := v.count("SELECT COUNT(*) FROM (SELECT 1 FROM grants WHERE provider = ? AND state IN ('Granted', 'Denied') AND since >= ? LIMIT 1) AS first_rows", provider, micros(since))
	return n > 0, err
}
