package store

import (
	"strconv"
	"strings"
)

// dialect has the SQL differences between the two databases.
type dialect struct {
	name string
	// serial is the column type of an auto-increment primary key.
	serial string
	// lock is the SELECT suffix that locks rows until the transaction ends.
	// SQLite needs none: it has one writer.
	lock string
	// skipLocked is the SELECT suffix that locks rows of table alias a and skips rows
	// that are locked.
	skipLocked string
	// numbered: placeholders are $1, $2, … (PostgreSQL).
	numbered bool
}

var (
	sqlite   = dialect{name: "sqlite3", serial: "INTEGER PRIMARY KEY AUTOINCREMENT"}
	postgres = dialect{name: "postgres", serial: "BIGSERIAL PRIMARY KEY", lock: " FOR UPDATE", skipLocked: " FOR UPDATE OF a SKIP LOCKED", numbered: true}
)

// bind replaces the question marks of a statement by the placeholders of the
// database. No statement has a question mark elsewhere.
func (d dialect) bind(statement string) string {
	if !d.numbered || !strings.Contains(statement, "?") {
		return statement
	}
	var b strings.Builder
	for n, part := range strings.Split(statement, "?") {
		if n > 0 {
			b.WriteString("$" + strconv.Itoa(n))
		}
		b.WriteString(part)
	}
	return b.String()
}
