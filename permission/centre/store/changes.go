package store

import (
	"encoding/json"
	"fmt"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// Changes are the rows that a transaction writes for one application. They are collected
// first, so that the rows of many applications are written together.
type Changes struct {
	application string
	created     *Application
	updated     *Application
	// replaced: all earlier grants are deleted.
	replaced bool
	grants   []Grant
	// replacedIPs are the ordinals of grants whose earlier addresses are deleted.
	replacedIPs []int
	grantIPs    []grantIP
	history     []api.HistoryEntry
}

type grantIP struct {
	ordinal int
	ip      string
}

// Create inserts the application, with its addresses.
func (c *Changes) Create(a Application) { c.application, c.created = a.ID, &a }

// Update writes the mutable columns of the application.
func (c *Changes) Update(a Application) {
	if c.created != nil {
		c.created = &a
		return
	}
	c.application, c.updated = a.ID, &a
}

// PutGrant inserts or updates a grant of the application.
func (c *Changes) PutGrant(g Grant) {
	for i, other := range c.grants {
		if other.Ordinal == g.Ordinal {
			c.grants[i] = g
			return
		}
	}
	c.grants = append(c.grants, g)
}

// PutGrantIPs adds the addresses of a grant.
func (c *Changes) PutGrantIPs(g Grant, ips []string) {
	for _, ip := range ips {
		c.grantIPs = append(c.grantIPs, grantIP{g.Ordinal, ip})
	}
}

// ReplaceGrantIPs replaces the addresses of a grant.
func (c *Changes) ReplaceGrantIPs(g Grant, ips []string) {
	c.replacedIPs = append(c.replacedIPs, g.Ordinal)
	c.PutGrantIPs(g, ips)
}

// DeleteGrants deletes the grants of the application.
func (c *Changes) DeleteGrants() {
	c.replaced, c.grants, c.replacedIPs, c.grantIPs = true, nil, nil, nil
}

// AddHistory records a state change of the application or of one of its grants.
func (c *Changes) AddHistory(e api.HistoryEntry) { c.history = append(c.history, e) }

var (
	insertApplications = insertRows("applications",
		"id cluster namespace pod pod_uid set_name request state reason message #attempt #going #created #updated #asked #version", "")
	updateApplications = rowsStatement{
		columns: text("state reason message #attempt #going #updated #asked #version id"),
		one: `UPDATE applications SET state = ?, reason = ?, message = ?, attempt = ?, going = ?, updated = ?, asked = ?, version = ?
			WHERE id = ?`,
		many: `UPDATE applications SET state = u.state, reason = u.reason, message = u.message, attempt = u.attempt, going = u.going, updated = u.updated, asked = u.asked, version = u.version
			FROM %s AS u (state, reason, message, attempt, going, updated, asked, version, id) WHERE applications.id = u.id`,
	}
	insertApplicationIPs = insertRows("application_ips", "application ip", " ON CONFLICT DO NOTHING")
	insertGrantIPs       = insertRows("grant_ips", "application #ordinal ip", " ON CONFLICT DO NOTHING")
	insertHistory        = insertRows("history", "application #time permission state_from state_to #attempt reason message who", "")
	putGrants            = insertRows("grants", `application #ordinal permission provider subject owner parameters state reason message #calls #failures #since #began #next_try
		#due lease call_key #keys #touched #pending kept`,
		` ON CONFLICT (application, ordinal) DO UPDATE SET permission = excluded.permission, provider = excluded.provider, subject = excluded.subject, owner = excluded.owner,
		parameters = excluded.parameters, state = excluded.state, reason = excluded.reason, message = excluded.message, calls = excluded.calls, failures = excluded.failures,
		since = excluded.since, began = excluded.began, next_try = excluded.next_try, due = excluded.due,
		lease = excluded.lease, call_key = excluded.call_key, keys = excluded.keys,
		touched = excluded.touched, pending = excluded.pending, kept = excluded.kept`)
)

// Apply writes the changes of different applications.
func (t Tx) Apply(all []*Changes) error {
	var created, updated, applicationIPs, grants, grantIPs, history [][]any
	for _, c := range all {
		if c.created != nil {
			request, err := json.Marshal(c.created.Request)
			if err != nil {
				return err
			}
			created = append(created, c.created.row(string(request)))
			for _, ip := range c.created.Request.PodIPs {
				applicationIPs = append(applicationIPs, []any{c.created.ID, ip})
			}
		}
		if c.updated != nil {
			updated = append(updated, c.updated.mutable())
		}
		if c.replaced {
			if err := t.deleteGrants(c.application); err != nil {
				return err
			}
		}
		for _, ordinal := range c.replacedIPs {
			if _, err := t.exec("DELETE FROM grant_ips WHERE application = ? AND ordinal = ?", c.application, ordinal); err != nil {
				return err
			}
		}
		for _, g := range c.grants {
			row, err := g.row()
			if err != nil {
				return err
			}
			grants = append(grants, row)
		}
		for _, g := range c.grantIPs {
			grantIPs = append(grantIPs, []any{c.application, int64(g.ordinal), g.ip})
		}
		for _, e := range c.history {
			history = append(history, []any{c.application, micros(e.Time), e.Permission, string(e.From), string(e.To), int64(e.Attempt), e.Reason, e.Message, e.Who})
		}
	}
	if n, err := updateApplications.write(t, updated); err != nil || n != int64(len(updated)) {
		return writeError("update applications", err)
	}
	for _, w := range []struct {
		what      string
		statement rowsStatement
		rows      [][]any
	}{
		{"insert applications", insertApplications, created},
		{"insert addresses of applications", insertApplicationIPs, applicationIPs},
		{"write grants", putGrants, grants},
		{"insert addresses of grants", insertGrantIPs, grantIPs},
		{"insert history", insertHistory, history},
	} {
		if _, err := w.statement.write(t, w.rows); err != nil {
			return writeError(w.what, err)
		}
	}
	return nil
}

func writeError(what string, err error) error {
	if err == nil {
		err = ErrConflict
	}
	return fmt.Errorf("%s: %w", what, err)
}

func (t Tx) deleteGrants(application string) error {
	for _, table := range []string{"grant_ips", "grants"} {
		if _, err := t.exec("DELETE FROM "+table+" WHERE application = ?", application); err != nil {
			return err
		}
	}
	return nil
}

func (a Application) row(request string) []any {
	return []any{a.ID, a.Request.Cluster, a.Request.Namespace, a.Request.Pod, a.Request.PodUID, a.Request.Set, request,
		string(a.State), a.Reason, a.Message, int64(a.Attempt), boolToInt(a.RevokeRequested), micros(a.Created), micros(a.Updated), micros(a.AttemptBegan), a.Version}
}

func (a Application) mutable() []any {
	return []any{string(a.State), a.Reason, a.Message, int64(a.Attempt), boolToInt(a.RevokeRequested), micros(a.Updated), micros(a.AttemptBegan), a.Version, a.ID}
}

func (g Grant) row() ([]any, error) {
	parameters, err := json.Marshal(g.Parameters)
	if err != nil {
		return nil, err
	}
	kept, err := json.Marshal(g.Kept)
	if err != nil {
		return nil, err
	}
	return []any{g.Application, int64(g.Ordinal), g.Permission, g.Provider, g.Subject, g.Owner, string(parameters), string(g.State), g.Reason, g.Message,
		int64(g.Calls), int64(g.Failures), micros(g.Since), micros(g.Began), micros(g.NextTry), micros(g.Due), g.RunID,
		g.CallKey, int64(g.KeysUsed), boolToInt(g.MaybeGranted), boolToInt(g.Pending), string(kept)}, nil
}
