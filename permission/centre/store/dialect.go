package store

import (
	"encoding/json"
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
	// byBytes is the suffix of a column that compares it by its bytes, as Go does. SQLite always does.
	byBytes string
	// numbered: placeholders are $1, $2, … (PostgreSQL).
	numbered bool
}

var (
	sqlite   = dialect{name: "sqlite3", serial: "INTEGER PRIMARY KEY AUTOINCREMENT"}
	postgres = dialect{name: "postgres", serial: "BIGSERIAL PRIMARY KEY", lock: " FOR UPDATE", skipLocked: " FOR UPDATE OF a SKIP LOCKED", byBytes: ` COLLATE "C"`, numbered: true}
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

// in returns the condition that a column has one of the values, and its argument. The text
// of the statement does not depend on the number of values, so it is prepared only once.
func (d dialect) in(column string, values []string) (condition string, arg any) {
	if d.numbered {
		return column + " = ANY(?)", values
	}
	if values == nil {
		values = []string{}
	}
	list, _ := json.Marshal(values) // strings can be encoded
	return column + " IN (SELECT value FROM json_each(?))", string(list)
}
