package store

import (
	"database/sql"
	"encoding/json"
	"strings"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// Application is a row of applications.
type Application struct {
	ID              string
	Request         api.ApplicationRequest
	State           api.State
	Reason, Message string
	Attempt         int
	// RevokeRequested stays true when the revocation has ended.
	RevokeRequested  bool
	Created, Updated time.Time
	// AttemptBegan is when the last attempt began; zero for the first attempt.
	AttemptBegan time.Time
	Version      int64
}

// Filter selects applications; an empty field matches all.
type Filter struct {
	Cluster, Namespace, Pod, PodUID, IP, Set string
	States                                   []api.State
	// UIDAbove (exclusive) and UIDUpTo (inclusive) bound the pod UID, in the order of bytes.
	UIDAbove, UIDUpTo string
	// Owners selects applications with a permission of one of them; nil matches all.
	Owners []string
}

const applicationColumns = "id, request, state, reason, message, attempt, going, created, updated, asked, version"

// Application reads an application by id.
func (v View) Application(id string) (Application, error) {
	return scanApplication(v.row("SELECT "+applicationColumns+" FROM applications WHERE id = ?", id).Scan)
}

// LockApplications reads applications and locks them, and by convention their grants, until
// the transaction ends. They are locked in the order of their ids, so that transactions do not
// block each other.
func (t Tx) LockApplications(ids []string) (map[string]Application, error) {
	where, arg := t.dialect.in("id", ids)
	applications := map[string]Application{}
	err := t.each(func(rows *sql.Rows) error {
		a, err := scanApplication(rows.Scan)
		applications[a.ID] = a
		return err
	}, "SELECT "+applicationColumns+" FROM applications WHERE "+where+" ORDER BY id"+t.dialect.lock, arg)
	return applications, err
}

// Existing returns which of the ids are those of applications.
func (v View) Existing(ids []string) (map[string]bool, error) {
	where, arg := v.dialect.in("id", ids)
	existing := map[string]bool{}
	err := v.each(func(rows *sql.Rows) error {
		var id string
		err := rows.Scan(&id)
		existing[id] = true
		return err
	}, "SELECT id FROM applications WHERE "+where, arg)
	return existing, err
}

// ApplicationAt is an application and one of its addresses.
type ApplicationAt struct {
	IP string
	Application
}

// ApplicationsAt returns the applications of a cluster at addresses that are in one of the
// states, or that belong to one of the pods.
func (v View) ApplicationsAt(cluster string, ips []string, states []api.State, podUIDs []string) ([]ApplicationAt, error) {
	atIP, ipArg := v.dialect.in("i.ip", ips)
	ofPod, podArg := v.dialect.in("pod_uid", podUIDs)
	inState, stateArgs := inList(states)
	var list []ApplicationAt
	err := v.each(func(rows *sql.Rows) error {
		var at ApplicationAt
		var err error
		at.Application, err = scanApplication(func(columns ...any) error { return rows.Scan(append(columns, &at.IP)...) })
		if at.Request.Cluster == cluster {
			list = append(list, at)
		}
		return err
	}, "SELECT "+applicationColumns+", i.ip FROM application_ips i CROSS JOIN applications a WHERE "+atIP+
		" AND a.id = i.application AND (state IN "+inState+" OR "+ofPod+") ORDER BY id", // No condition on the cluster: the planner would begin with all of its applications.
		append(append([]any{ipArg}, stateArgs...), podArg)...)
	return list, err
}

// ApplicationVersion reads the version of an application.
func (v View) ApplicationVersion(id string) (int64, error) {
	var version int64
	err := v.row("SELECT version FROM applications WHERE id = ?", id).Scan(&version)
	return version, notFound(err)
}

// ChangedSince returns the versions of the applications updated at or after since.
func (v View) ChangedSince(since time.Time) (map[string]int64, error) {
	versions := map[string]int64{}
	err := v.each(func(rows *sql.Rows) error {
		var id string
		var version int64
		err := rows.Scan(&id, &version)
		versions[id] = version
		return err
	}, "SELECT id, version FROM applications WHERE updated >= ?", micros(since))
	return versions, err
}

// Applications lists a page, ordered by id.
func (v View) Applications(f Filter, page Page) ([]Application, error) {
	where, args := f.where(v.dialect)
	where, args = append(where, "id > ?"), append(args, page.After)
	var list []Application
	err := v.each(func(rows *sql.Rows) error {
		a, err := scanApplication(rows.Scan)
		list = append(list, a)
		return err
	}, "SELECT "+applicationColumns+" FROM applications WHERE "+strings.Join(where, " AND ")+" ORDER BY id LIMIT ?", append(args, page.Limit)...)
	return list, err
}

// CountStates counts applications by state.
func (v View) CountStates() (map[api.State]int, error) {
	counts := map[api.State]int{}
	err := v.each(func(rows *sql.Rows) error {
		var state api.State
		var n int
		err := rows.Scan(&state, &n)
		counts[state] = n
		return err
	}, "SELECT state, COUNT(*) FROM applications GROUP BY state")
	return counts, err
}

func (f Filter) where(d dialect) (where []string, args []any) {
	for _, c := range []struct{ column, value string }{
		{"cluster", f.Cluster}, {"namespace", f.Namespace}, {"pod", f.Pod}, {"pod_uid", f.PodUID}, {"set_name", f.Set},
	} {
		if c.value != "" {
			where, args = append(where, c.column+" = ?"), append(args, c.value)
		}
	}
	if f.UIDAbove != "" {
		where, args = append(where, "pod_uid"+d.byBytes+" > ?"), append(args, f.UIDAbove)
	}
	if f.UIDUpTo != "" {
		where, args = append(where, "pod_uid"+d.byBytes+" <= ?"), append(args, f.UIDUpTo)
	}
	if f.IP != "" {
		where, args = append(where, "id IN (SELECT application FROM application_ips WHERE ip = ?)"), append(args, f.IP)
	}
	if f.States != nil {
		in, values := inList(f.States)
		where, args = append(where, "state IN "+in), append(args, values...)
	}
	if f.Owners != nil {
		// A token may have any number of groups.
		in, owners := d.in("owner", f.Owners)
		where, args = append(where, "id IN (SELECT application FROM grants WHERE "+in+")"), append(args, owners)
	}
	return where, args
}

// inList returns the placeholders and the arguments of an IN clause.
func inList[T any](values []T) (string, []any) {
	args := make([]any, len(values))
	for i, v := range values {
		args[i] = v
	}
	if len(values) == 0 {
		return "(NULL)", nil
	}
	return "(" + strings.TrimSuffix(strings.Repeat("?, ", len(values)), ", ") + ")", args
}

func scanApplication(scan func(...any) error) (Application, error) {
	var a Application
	var request string
	var going int
	var created, updated, asked int64
	if err := scan(&a.ID, &request, &a.State, &a.Reason, &a.Message, &a.Attempt, &going, &created, &updated, &asked, &a.Version); err != nil {
		return a, notFound(err)
	}
	a.RevokeRequested, a.Created, a.Updated, a.AttemptBegan = going != 0, fromMicros(created), fromMicros(updated), fromMicros(asked)
	return a, json.Unmarshal([]byte(request), &a.Request)
}

func boolToInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
