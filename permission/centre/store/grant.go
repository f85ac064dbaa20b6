package store

import (
	"database/sql"
	"encoding/json"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// Grant is a row of grants: one permission of one application and its progress.
type Grant struct {
	Application string
	Ordinal     int
	Permission  string
	Provider    string
	// Subject is what the provider grants. The provider cannot tell two grants
	// of the same subject to the same address apart.
	Subject string
	Owner   string
	// Parameters are those of the permission when this attempt began.
	Parameters      map[string]string
	State           api.State
	Reason, Message string
	// Calls counts the provider calls of this attempt or of the revocation,
	// Failures those that failed.
	Calls    int
	Failures int
	// Since is when State began, Began when the attempt or revocation began.
	Since, Began time.Time
	NextTry      time.Time
	// Step counts the jobs of this grant; Job is the id of the last one.
	Step, Job int64
	// Due is when the next step is due; zero if there is none.
	Due time.Time
	// ClaimID is the random name of the claim of a step; empty if no step is
	// claimed. Columns lease and lease_until hold it and ClaimedUntil.
	ClaimID      string
	ClaimedUntil time.Time
	// CallKey is the idempotency key; KeysUsed counts the earlier keys.
	CallKey  string
	KeysUsed int
	// MaybeGranted: a call was sent, so the provider may have granted it.
	MaybeGranted bool
	// Pending: the provider accepted the request and decides later. Kept holds
	// the values that its responses gave for later calls.
	Pending bool
	Kept    map[string]any
}

const grantColumns = `application, ordinal, permission, provider, subject, owner, parameters, state, reason, message, calls, failures, since, began, next_try,
	step, job, due, lease, lease_until, call_key, keys, touched, pending, kept`

// Grants reads the grants of an application in the order of its set.
func (v View) Grants(application string) ([]Grant, error) {
	return v.grants("SELECT "+grantColumns+" FROM grants WHERE application = ? ORDER BY ordinal", application)
}

// Stuck lists grants whose worker died: the claim expired before now, or the
// grant was due before dueBefore and has no job that waits or began to run after
// dueBefore. A running job without a claim waits for a slot of the provider.
func (v View) Stuck(now, dueBefore time.Time, limit int) ([]Grant, error) {
	return v.grants(`SELECT `+grantColumns+` FROM grants WHERE (lease_until > 0 AND lease_until < ?)
		OR (due > 0 AND due < ? AND lease_until = 0 AND NOT EXISTS (
			SELECT 1 FROM river_job WHERE river_job.id = grants.job AND (river_job.state IN ('available', 'scheduled', 'retryable', 'pending')
				OR river_job.state = 'running' AND `+v.dialect.attempted+` > ?)))
		ORDER BY due LIMIT ?`, micros(now), micros(dueBefore), micros(dueBefore), limit)
}

// UnscheduledLeaks lists the Leaked grants of a provider that have no next step.
func (v View) UnscheduledLeaks(provider string, limit int) ([]Grant, error) {
	return v.grants("SELECT "+grantColumns+" FROM grants WHERE provider = ? AND state = ? AND due = 0 LIMIT ?", provider, api.Leaked, limit)
}

// CountUnrevoked counts the grants that the provider may have granted, or may still
// be called for.
func (v View) CountUnrevoked(provider string) (int, error) {
	return v.count("SELECT COUNT(*) FROM grants WHERE provider = ? AND state <> ? AND (state <> ? OR touched = 1)", provider, api.Revoked, api.Denied)
}

// LeakedAt lists the leaked grants of other pods at an address.
func (v View) LeakedAt(cluster, ip, notPodUID string, limit int) ([]api.LeakedGrant, error) {
	var leaked []api.LeakedGrant
	err := v.each(func(rows *sql.Rows) error {
		l := api.LeakedGrant{IP: ip}
		var since int64
		err := rows.Scan(&l.Application, &l.Namespace, &l.Pod, &l.Permission, &l.Owner, &since)
		l.Since = fromMicros(since)
		leaked = append(leaked, l)
		return err
	}, `SELECT a.id, a.namespace, a.pod, g.permission, g.owner, g.since FROM grant_ips i CROSS JOIN grants g CROSS JOIN applications a
		WHERE a.id = i.application AND g.application = i.application AND g.ordinal = i.ordinal AND i.ip = ? AND a.cluster = ? AND a.pod_uid <> ? AND g.state = ? ORDER BY g.since DESC LIMIT ?`,
		ip, cluster, notPodUID, api.Leaked, limit)
	return leaked, err
}

// LeakedByProvider counts the Leaked grants of each provider.
func (v View) LeakedByProvider() (map[string]int, error) {
	counts := map[string]int{}
	err := v.each(func(rows *sql.Rows) error {
		var provider string
		var n int
		err := rows.Scan(&provider, &n)
		counts[provider] = n
		return err
	}, "SELECT provider, COUNT(*) FROM grants WHERE state = ? GROUP BY provider", api.Leaked)
	return counts, err
}

// Overlap reports whether other applications have grants of the same subject at the
// same addresses.
type Overlap struct {
	// Revoking: another grant is being revoked. Held: another pod may use it.
	Revoking, Held bool
	// HeldByPod: another application of the same pod has it granted. CalledByPod:
	// a call for another application of the same pod is in progress.
	HeldByPod, CalledByPod bool
}

// Overlap finds grants of the same subject at the same addresses for other
// applications. It locks the subject until the transaction ends.
func (t Tx) Overlap(g Grant, podUID string, ips []string) (Overlap, error) {
	var o Overlap
	in, args := inList(ips)
	if t.dialect.numbered {
		if _, err := t.exec("SELECT pg_advisory_xact_lock(hashtext(?))", g.Provider+"/"+g.Subject); err != nil {
			return o, err
		}
	}
	err := t.each(func(rows *sql.Rows) error {
		var state api.State
		var going, touched, claimed int
		var uid string
		err := rows.Scan(&state, &going, &touched, &claimed, &uid)
		o.Revoking = o.Revoking || state == api.Revoking || claimed == 1 && going == 1
		o.Held = o.Held || going == 0 && touched == 1 && uid != podUID
		o.HeldByPod = o.HeldByPod || going == 0 && state == api.Granted && uid == podUID
		o.CalledByPod = o.CalledByPod || going == 0 && claimed == 1 && uid == podUID
		return err
	}, `SELECT g.state, a.going, g.touched, CASE WHEN g.lease_until > 0 THEN 1 ELSE 0 END, a.pod_uid
		FROM grant_ips i CROSS JOIN grants g CROSS JOIN applications a
		WHERE i.ip IN `+in+` AND g.application = i.application AND g.ordinal = i.ordinal AND a.id = i.application
		AND g.subject = ? AND g.provider = ? AND a.id <> ?`, // CROSS JOIN keeps the order: SQLite would begin with all grants of the provider.
		append(args, g.Subject, g.Provider, g.Application)...)
	return o, err
}

// DeleteGrants deletes all grants of an application.
func (t Tx) DeleteGrants(application string) error {
	for _, table := range []string{"grant_ips", "grants"} {
		if _, err := t.exec("DELETE FROM "+table+" WHERE application = ?", application); err != nil {
			return err
		}
	}
	return nil
}

// PutGrantIPs adds the addresses of a grant.
func (t Tx) PutGrantIPs(g Grant, ips []string) error {
	for _, ip := range ips {
		if _, err := t.exec("INSERT INTO grant_ips (application, ordinal, ip) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", g.Application, g.Ordinal, ip); err != nil {
			return err
		}
	}
	return nil
}

// PutGrant inserts or updates a grant.
func (t Tx) PutGrant(g Grant) error {
	parameters, err := json.Marshal(g.Parameters)
	if err != nil {
		return err
	}
	kept, err := json.Marshal(g.Kept)
	if err != nil {
		return err
	}
	_, err = t.exec(`INSERT INTO grants (`+grantColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (application, ordinal) DO UPDATE SET permission = excluded.permission, provider = excluded.provider, subject = excluded.subject, owner = excluded.owner,
		parameters = excluded.parameters, state = excluded.state, reason = excluded.reason, message = excluded.message, calls = excluded.calls, failures = excluded.failures,
		since = excluded.since, began = excluded.began, next_try = excluded.next_try, step = excluded.step, job = excluded.job, due = excluded.due,
		lease = excluded.lease, lease_until = excluded.lease_until, call_key = excluded.call_key, keys = excluded.keys,
		touched = excluded.touched, pending = excluded.pending, kept = excluded.kept`,
		g.Application, g.Ordinal, g.Permission, g.Provider, g.Subject, g.Owner, string(parameters), g.State, g.Reason, g.Message, g.Calls, g.Failures,
		micros(g.Since), micros(g.Began), micros(g.NextTry), g.Step, g.Job, micros(g.Due), g.ClaimID, micros(g.ClaimedUntil),
		g.CallKey, g.KeysUsed, boolToInt(g.MaybeGranted), boolToInt(g.Pending), string(kept))
	return err
}

func (v View) grants(statement string, args ...any) ([]Grant, error) {
	var grants []Grant
	err := v.each(func(rows *sql.Rows) error {
		var g Grant
		var parameters, kept string
		var since, began, nextTry, due, claimedUntil int64
		var touched, pending int
		if err := rows.Scan(&g.Application, &g.Ordinal, &g.Permission, &g.Provider, &g.Subject, &g.Owner, &parameters, &g.State, &g.Reason, &g.Message, &g.Calls, &g.Failures,
			&since, &began, &nextTry, &g.Step, &g.Job, &due, &g.ClaimID, &claimedUntil, &g.CallKey, &g.KeysUsed, &touched, &pending, &kept); err != nil {
			return err
		}
		g.Since, g.Began, g.NextTry, g.Due, g.ClaimedUntil = fromMicros(since), fromMicros(began), fromMicros(nextTry), fromMicros(due), fromMicros(claimedUntil)
		g.MaybeGranted, g.Pending = touched != 0, pending != 0
		if err := json.Unmarshal([]byte(parameters), &g.Parameters); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(kept), &g.Kept); err != nil {
			return err
		}
		grants = append(grants, g)
		return nil
	}, statement, args...)
	return grants, err
}
