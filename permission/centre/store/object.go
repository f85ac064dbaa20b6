package store

import (
	"database/sql"
	"errors"
	"strings"
	"time"
)

// ErrConflict is returned if a row does not have the expected version.
var ErrConflict = errors.New("version conflict")

// Kind is the kind of a registered object.
type Kind string

// The kinds.
const (
	KindProvider   Kind = "provider"
	KindPermission Kind = "permission"
	KindSet        Kind = "permissionset"
)

// Object is a registered object; Body is its JSON.
type Object struct {
	Kind                     Kind
	Name, Owner, Description string
	Body                     []byte
	Version                  int64
	Created, Updated         time.Time
}

// Page selects a page of a list.
type Page struct {
	// After is the last name or id of the previous page.
	After string
	Limit int
	// Search is a part of the name, owner or description, in any case.
	Search string
}

const objectColumns = "kind, name, owner, description, body, version, created, updated"

// Object reads an object.
func (v View) Object(kind Kind, name string) (Object, error) {
	return scanObject(v.row("SELECT "+objectColumns+" FROM objects WHERE kind = ? AND name = ?", kind, name).Scan)
}

// LockObject reads an object and locks it until the transaction ends.
func (t Tx) LockObject(kind Kind, name string) (Object, error) {
	return scanObject(t.row("SELECT "+objectColumns+" FROM objects WHERE kind = ? AND name = ?"+t.dialect.lock, kind, name).Scan)
}

// Objects lists a page of a kind, ordered by name.
func (v View) Objects(kind Kind, page Page) ([]Object, error) {
	statement, args := "SELECT "+objectColumns+" FROM objects WHERE kind = ? AND name > ?", []any{kind, page.After}
	if page.Search != "" {
		like := "%" + escapeLike(strings.ToLower(page.Search)) + "%"
		statement += ` AND (LOWER(name) LIKE ? ESCAPE '\' OR LOWER(owner) LIKE ? ESCAPE '\' OR LOWER(description) LIKE ? ESCAPE '\')`
		args = append(args, like, like, like)
	}
	statement, args = statement+" ORDER BY name LIMIT ?", append(args, page.Limit)
	var objects []Object
	err := v.each(func(rows *sql.Rows) error {
		o, err := scanObject(rows.Scan)
		objects = append(objects, o)
		return err
	}, statement, args...)
	return objects, err
}

// Create inserts an object; it returns ErrConflict if the name exists.
func (t Tx) Create(o Object) error {
	n, err := t.exec("INSERT INTO objects ("+objectColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
		o.Kind, o.Name, o.Owner, o.Description, string(o.Body), o.Version, micros(o.Created), micros(o.Updated))
	return oneRow(n, err)
}

// Update replaces an object; it returns ErrConflict if its stored version is not the expected one.
func (t Tx) Update(o Object, expected int64) error {
	n, err := t.exec("UPDATE objects SET owner = ?, description = ?, body = ?, version = ?, updated = ? WHERE kind = ? AND name = ? AND version = ?",
		o.Owner, o.Description, string(o.Body), o.Version, micros(o.Updated), o.Kind, o.Name, expected)
	return oneRow(n, err)
}

// Delete deletes the object of the given version and its references.
func (t Tx) Delete(kind Kind, name string, version int64) error {
	if err := oneRow(t.exec("DELETE FROM objects WHERE kind = ? AND name = ? AND version = ?", kind, name, version)); err != nil {
		return err
	}
	_, err := t.exec("DELETE FROM links WHERE kind = ? AND name = ?", kind, name)
	return err
}

// SetReferences replaces the references of an object to other objects.
func (t Tx) SetReferences(kind Kind, name string, toKind Kind, toNames []string) error {
	if _, err := t.exec("DELETE FROM links WHERE kind = ? AND name = ?", kind, name); err != nil {
		return err
	}
	for _, to := range toNames {
		if _, err := t.exec("INSERT INTO links (kind, name, to_kind, to_name) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", kind, name, toKind, to); err != nil {
			return err
		}
	}
	return nil
}

// CountReferences counts the objects that refer to this one.
func (v View) CountReferences(toKind Kind, toName string) (int, error) {
	return v.count("SELECT COUNT(*) FROM links WHERE to_kind = ? AND to_name = ?", toKind, toName)
}

// ProvidersOfSets returns the names of the providers of the permissions of sets, by set.
func (v View) ProvidersOfSets(sets []string) (map[string][]string, error) {
	where, arg := v.dialect.in("s.name", sets)
	providers := map[string][]string{}
	err := v.each(func(rows *sql.Rows) error {
		var set, provider string
		err := rows.Scan(&set, &provider)
		providers[set] = append(providers[set], provider)
		return err
	}, "SELECT DISTINCT s.name, p.to_name FROM links s JOIN links p ON p.kind = ? AND p.name = s.to_name WHERE s.kind = ? AND "+where,
		KindPermission, KindSet, arg)
	return providers, err
}

func scanObject(scan func(...any) error) (Object, error) {
	var o Object
	var body string
	var created, updated int64
	if err := scan(&o.Kind, &o.Name, &o.Owner, &o.Description, &body, &o.Version, &created, &updated); err != nil {
		return o, notFound(err)
	}
	o.Body, o.Created, o.Updated = []byte(body), fromMicros(created), fromMicros(updated)
	return o, nil
}

func oneRow(n int64, err error) error {
	if err == nil && n == 0 {
		return ErrConflict
	}
	return err
}

func escapeLike(s string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(s)
}
