package store

import (
	"database/sql"
	"encoding/json"
	"strings"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// Grant is a row of grants: one permission of one application and its progress.
type Grant struct {
	Application string
	Ordinal     int
	Permission  string
	Provider    string
	// Subject is the permission, or the user of a database. Only the version before compares it, whose replicas may run
	// beside this one: drop it one minor version later.
	Subject string
	Owner   string
	// Parameters are those of the permission when the grant was requested first. A new attempt takes over
	// later ones if the grant cannot exist, or if it was denied and a revocation with the later ones
	// removes it, too. A new attempt of a Leaked application keeps them.
	Parameters      map[string]string
	State           api.State
	Reason, Message string
	// Calls counts the provider calls of this attempt or of the revocation,
	// Failures those that failed.
	Calls    int
	Failures int
	// Since is when State began. Began is the time from which pollTimeoutSeconds counts: the end of the
	// first call, or before it the time when the first step became due. For a revocation that the provider accepts, it is
	// the end of the call that it accepted.
	Since, Began time.Time
	NextTry      time.Time
	// Due is when the next step is due; zero if there is none. While a step is
	// in progress, it is when the run of the step expires.
	Due time.Time
	// RunID is the random id of the run of a step, in column lease; empty if no step is
	// in progress.
	RunID string
	// CallKey is the idempotency key; KeysUsed counts the earlier keys.
	CallKey  string
	KeysUsed int
	// MaybeGranted: a call was sent, so the provider may have granted it.
	MaybeGranted bool
	// Pending: the provider accepted the grant or revocation and decides later. Kept are
	// the values that its responses gave for later calls; numbers are json.Numbers.
	Pending bool
	Kept    map[string]any
}

const grantColumns = `application, ordinal, permission, provider, subject, owner, parameters, state, reason, message, calls, failures, since, began, next_try,
	due, lease, call_key, keys, touched, pending, kept`

// Grants reads the grants of an application in the order of its set.
func (v View) Grants(application string) ([]Grant, error) {
	return v.grants("SELECT "+grantColumns+" FROM grants WHERE application = ? ORDER BY ordinal", application)
}

// GrantsOf reads the grants of applications.
func (v View) GrantsOf(applications []string) (map[string][]Grant, error) {
	where, arg := v.dialect.in("application", applications)
	all, err := v.grants("SELECT "+grantColumns+" FROM grants WHERE "+where+" ORDER BY application, ordinal", arg)
	grants := map[string][]Grant{}
	for _, g := range all {
		grants[g.Application] = append(grants[g.Application], g)
	}
	return grants, err
}

// CountUnrevoked counts the grants of a provider that it may have granted, and those
// for which it may still be called.
func (v View) CountUnrevoked(provider string) (int, error) {
	return v.count("SELECT COUNT(*) FROM grants WHERE provider = ? AND state <> ? AND (state <> ? OR touched = 1)", provider, api.Revoked, api.Denied)
}

// Leak is a leaked grant and its pod.
type Leak struct {
	api.LeakedGrant
	Cluster, PodUID string
}

// LeakedAt lists the leaked grants at addresses, newest first.
func (v View) LeakedAt(ips []string) ([]Leak, error) {
	var leaks []Leak
	atIP, arg := v.dialect.in("i.ip", ips)
	err := v.each(func(rows *sql.Rows) error {
		var l Leak
		var since int64
		err := rows.Scan(&l.IP, &l.Application, &l.Cluster, &l.PodUID, &l.Namespace, &l.Pod, &l.Permission, &l.Owner, &since)
		l.Since = fromMicros(since)
		leaks = append(leaks, l)
		return err
	}, `SELECT i.ip, a.id, a.cluster, a.pod_uid, a.namespace, a.pod, g.permission, g.owner, g.since FROM grant_ips i CROSS JOIN grants g CROSS JOIN applications a
		WHERE a.id = i.application AND g.application = i.application AND g.ordinal = i.ordinal AND `+atIP+` AND g.state = 'Leaked' ORDER BY g.since DESC`, arg)
	return leaks, err
}

// LeakedApplications lists ids of applications with leaked grants of a provider, in
// their order, above an id.
func (v View) LeakedApplications(provider, above string, limit int) ([]string, error) {
	var ids []string
	err := v.each(func(rows *sql.Rows) error {
		var id string
		err := rows.Scan(&id)
		ids = append(ids, id)
		return err
	}, "SELECT DISTINCT application FROM grants WHERE provider = ? AND state = 'Leaked' AND application > ? ORDER BY application LIMIT ?", provider, above, limit)
	return ids, err
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
	}, "SELECT provider, COUNT(*) FROM grants WHERE state = 'Leaked' GROUP BY provider")
	return counts, err
}

// Overlap describes, for one grant, the grants of other applications that its revocation would remove.
type Overlap struct {
	// Revoking: one of these grants is being revoked. RevokeSent: the provider is being
	// called for the revocation, or has accepted it and has not revoked yet, also for a leaked grant.
	// UsedByOtherPod: another pod may use one.
	Revoking, RevokeSent, UsedByOtherPod bool
	// GrantedToPod: another application of the same pod has it granted. CalledByPod: a call for another application of the
	// same pod is in progress. UndecidedByPod: likewise, or its result is unknown, or the provider decides later.
	// UnknownToPod: an attempt of another application of the same pod ended, and it may have granted it. The next attempt
	// repeats the key of the call, so the provider may not grant it again.
	GrantedToPod, CalledByPod, UndecidedByPod, UnknownToPod bool
	// UsedInCluster: another pod of the same cluster may use one of these grants. UndecidedInCluster: the result of its
	// call is unknown, or the provider decides later.
	UsedInCluster, UndecidedInCluster bool
	// CoveredInCluster and CoveredByPod: a grant of UsedInCluster, or of GrantedToPod, includes this grant: it
	// is for all its addresses, and allows all that this grant allows. Its revocation also removes this grant.
	CoveredInCluster, CoveredByPod bool
	// UsedByOtherClusterName: a pod with the same UID under another cluster name may use one. It is
	// treated as another pod, because a revocation under this cluster name does not revoke it.
	UsedByOtherClusterName bool
	// Granted: an application of any pod has it granted. CalledByOtherPod: a call for an
	// application of another pod is started, and may not be sent yet.
	Granted, CalledByOtherPod bool
	// Leaks are the applications whose grants are Leaked and wait for a retry, or are retried.
	Leaks []string
}

// GrantAt is a grant at an address, with what Overlap needs of its application.
type GrantAt struct {
	// IPs are the addresses of the grant, as far as they were asked for.
	IPs             []string
	Cluster, PodUID string
	RevokeRequested bool
	// Grant has only the fields that are needed.
	Grant Grant
}

// GrantsAt returns the grants at addresses that are not Revoked. The caller has locked the
// provider's rate limit, so that two concurrent starts see each other's grants.
func (t Tx) GrantsAt(ips []string) ([]GrantAt, error) {
	atIP, arg := t.dialect.in("i.ip", ips)
	var all []GrantAt
	type key struct {
		application string
		ordinal     int
	}
	index := map[key]int{}
	err := t.each(func(rows *sql.Rows) error {
		var a GrantAt
		var ip, parameters, kept string
		g := &a.Grant
		if err := rows.Scan(&ip, &g.Application, &g.Ordinal, &g.Provider, &parameters, &kept, &g.State, &a.RevokeRequested, &g.MaybeGranted, &g.Pending, &g.RunID, &a.Cluster, &a.PodUID); err != nil {
			return err
		}
		k := key{g.Application, g.Ordinal}
		if i, known := index[k]; known {
			all[i].IPs = append(all[i].IPs, ip)
			return nil
		}
		a.IPs, index[k] = []string{ip}, len(all)
		if err := g.decode(parameters, kept); err != nil {
			return err
		}
		all = append(all, a)
		return nil
	}, `SELECT i.ip, g.application, g.ordinal, g.provider, g.parameters, g.kept, g.state, a.going, g.touched, g.pending, g.lease, a.cluster, a.pod_uid
		FROM grant_ips i CROSS JOIN grants g CROSS JOIN applications a
		WHERE `+atIP+` AND g.application = i.application AND g.ordinal = i.ordinal AND a.id = i.application
		AND g.state <> 'Revoked'`, // No condition on the provider: the planner would begin with all grants of the provider.
		arg)
	return all, err
}

// Add adds a grant of another application that the revocation of the grant would remove. covers: it includes the grant.
func (o *Overlap) Add(a GrantAt, cluster, podUID string, covers bool) {
	state, inProgress := a.Grant.State, a.Grant.RunID != ""
	o.Revoking = o.Revoking || state == api.Revoking || inProgress && a.RevokeRequested
	o.RevokeSent = o.RevokeSent || a.RevokeRequested && (inProgress || a.Grant.Pending && (state == api.Revoking || state == api.Leaked))
	samePod := a.Cluster == cluster && a.PodUID == podUID
	usedByOther := !a.RevokeRequested && a.Grant.MaybeGranted && !samePod
	o.UsedByOtherPod = o.UsedByOtherPod || usedByOther
	o.UsedInCluster = o.UsedInCluster || usedByOther && a.Cluster == cluster
	o.UndecidedInCluster = o.UndecidedInCluster || usedByOther && a.Cluster == cluster && state == api.Applying
	o.CoveredInCluster = o.CoveredInCluster || usedByOther && a.Cluster == cluster && covers
	o.UsedByOtherClusterName = o.UsedByOtherClusterName || usedByOther && a.PodUID == podUID
	grantedToPod := !a.RevokeRequested && state == api.Granted && samePod
	o.GrantedToPod = o.GrantedToPod || grantedToPod
	o.CoveredByPod = o.CoveredByPod || grantedToPod && covers
	o.CalledByPod = o.CalledByPod || !a.RevokeRequested && inProgress && samePod
	o.UndecidedByPod = o.UndecidedByPod || !a.RevokeRequested && (inProgress || state == api.Applying && a.Grant.MaybeGranted) && samePod
	o.UnknownToPod = o.UnknownToPod || !a.RevokeRequested && samePod && a.Grant.MaybeGranted && (state == api.Failed || state == api.Requested)
	o.Granted = o.Granted || !a.RevokeRequested && state == api.Granted
	if a.RevokeRequested && state == api.Leaked {
		o.Leaks = append(o.Leaks, a.Grant.Application)
	}
	o.CalledByOtherPod = o.CalledByOtherPod || !a.RevokeRequested && inProgress && !samePod
}

// maxOtherNames bounds the names of OtherNames.
const maxOtherNames = 10

// OtherNames returns the other names of a cluster under which a pod with this UID has
// applications. Names that belong to a cluster with another UID are left out.
func (v View) OtherNames(cluster, podUID string) ([]api.OtherName, error) {
	var names []api.OtherName
	err := v.each(func(rows *sql.Rows) error {
		var n api.OtherName
		err := rows.Scan(&n.Cluster, &n.HasOrAwaitsGrant)
		names = append(names, n)
		return err
	}, `SELECT a.cluster, MAX(CASE WHEN g.touched = 1 AND g.state <> 'Revoked' OR g.due > 0 AND g.state IN ('Requested', 'Applying') THEN 1 ELSE 0 END)
		FROM applications a LEFT JOIN grants g ON g.application = a.id WHERE a.pod_uid = ? AND a.cluster <> ?
		AND NOT EXISTS (SELECT 1 FROM clusters c, clusters o WHERE c.name = ? AND o.name = a.cluster AND c.uid <> '' AND o.uid <> '' AND o.uid <> c.uid)
		GROUP BY a.cluster ORDER BY a.cluster LIMIT ?`, podUID, cluster, cluster, maxOtherNames)
	return names, err
}

func (v View) grants(statement string, args ...any) ([]Grant, error) {
	var grants []Grant
	err := v.each(func(rows *sql.Rows) error {
		var g Grant
		var parameters, kept string
		var since, began, nextTry, due int64
		if err := rows.Scan(&g.Application, &g.Ordinal, &g.Permission, &g.Provider, &g.Subject, &g.Owner, &parameters, &g.State, &g.Reason, &g.Message, &g.Calls, &g.Failures,
			&since, &began, &nextTry, &due, &g.RunID, &g.CallKey, &g.KeysUsed, &g.MaybeGranted, &g.Pending, &kept); err != nil {
			return err
		}
		g.Since, g.Began, g.NextTry, g.Due = fromMicros(since), fromMicros(began), fromMicros(nextTry), fromMicros(due)
		if err := g.decode(parameters, kept); err != nil {
			return err
		}
		grants = append(grants, g)
		return nil
	}, statement, args...)
	return grants, err
}

func (g *Grant) decode(parameters, kept string) error {
	if err := json.Unmarshal([]byte(parameters), &g.Parameters); err != nil {
		return err
	}
	d := json.NewDecoder(strings.NewReader(kept))
	d.UseNumber() // a float64 would change the digits of a large integer
	return d.Decode(&g.Kept)
}
