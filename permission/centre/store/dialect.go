package store

import (
	"strconv"
	"strings"
)

// dialect is what the two databases say differently.
type dialect struct {
	name string
	// serial is a key that counts by itself.
	serial string
	// lock makes a SELECT keep its row to its transaction. SQLite's writers
	// are alone anyway.
	lock string
	// numbered: placeholders are $1, $2, …
	numbered bool
}

var (
	sqlite   = dialect{name: "sqlite3", serial: "INTEGER PRIMARY KEY AUTOINCREMENT"}
	postgres = dialect{name: "postgres", serial: "BIGSERIAL PRIMARY KEY", lock: " FOR UPDATE", numbered: true}
)

// bind writes the placeholders of a statement, which are question marks, as
// the database wants them. No statement has a question mark elsewhere.
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
