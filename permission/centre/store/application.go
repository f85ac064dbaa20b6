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
	// UIDAbove (exclusive) and UIDUpTo (inclusive) bound the pod UID.
	UIDAbove, UIDUpTo string
	// Owners selects applications with a permission of one of them; nil matches all.
	Owners []string
}

const applicationColumns = "id, request, state, reason, message, attempt, going, created, updated, asked, version"

// Application reads an application by id.
func (v View) Application(id string) (Application, error) {
	return scanApplication(v.row("SELECT "+applicationColumns+" FROM applications WHERE id = ?", id).Scan)
}

// LockApplication reads an application and locks it, and by convention its
// grants, until the transaction ends.
func (t Tx) LockApplication(id string) (Application, error) {
	return scanApplication(t.row("SELECT "+applicationColumns+" FROM applications WHERE id = ?"+t.dialect.lock, id).Scan)
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

// CreateApplication inserts an application; it returns false if the id exists.
func (t Tx) CreateApplication(a Application) (bool, error) {
	request, err := json.Marshal(a.Request)
	if err != nil {
		return false, err
	}
	n, err := t.exec(`INSERT INTO applications (id, cluster, namespace, pod, pod_uid, set_name, request, state, reason, message, attempt, going, created, updated, version)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		a.ID, a.Request.Cluster, a.Request.Namespace, a.Request.Pod, a.Request.PodUID, a.Request.Set, string(request),
		a.State, a.Reason, a.Message, a.Attempt, boolToInt(a.RevokeRequested), micros(a.Created), micros(a.Updated), a.Version)
	if err != nil || n == 0 {
		return false, err
	}
	for _, ip := range a.Request.PodIPs {
		if _, err := t.exec("INSERT INTO application_ips (application, ip) VALUES (?, ?) ON CONFLICT DO NOTHING", a.ID, ip); err != nil {
			return false, err
		}
	}
	return true, nil
}

// UpdateApplication writes the mutable columns.
func (t Tx) UpdateApplication(a Application) error {
	return oneRow(t.exec("UPDATE applications SET state = ?, reason = ?, message = ?, attempt = ?, going = ?, updated = ?, asked = ?, version = ? WHERE id = ?",
		a.State, a.Reason, a.Message, a.Attempt, boolToInt(a.RevokeRequested), micros(a.Updated), micros(a.AttemptBegan), a.Version, a.ID))
}

// Applications lists a page, ordered by id.
func (v View) Applications(f Filter, page Page) ([]Application, error) {
	where, args := f.where()
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

func (f Filter) where() (where []string, args []any) {
	for _, c := range []struct{ column, value string }{
		{"cluster", f.Cluster}, {"namespace", f.Namespace}, {"pod", f.Pod}, {"pod_uid", f.PodUID}, {"set_name", f.Set},
	} {
		if c.value != "" {
			where, args = append(where, c.column+" = ?"), append(args, c.value)
		}
	}
	if f.UIDAbove != "" {
		where, args = append(where, "pod_uid > ?"), append(args, f.UIDAbove)
	}
	if f.UIDUpTo != "" {
		where, args = append(where, "pod_uid <= ?"), append(args, f.UIDUpTo)
	}
	if f.IP != "" {
		where, args = append(where, "id IN (SELECT application FROM application_ips WHERE ip = ?)"), append(args, f.IP)
	}
	if f.States != nil {
		in, values := inList(f.States)
		where, args = append(where, "state IN "+in), append(args, values...)
	}
	if f.Owners != nil {
		in, values := inList(f.Owners)
		where, args = append(where, "id IN (SELECT application FROM grants WHERE owner IN "+in+")"), append(args, values...)
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

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
