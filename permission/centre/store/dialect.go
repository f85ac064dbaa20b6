package store

import (
	"strconv"
	"strings"
)

// dialect holds the SQL differences between the two databases.
type dialect struct {
	name string
	// serial is the column type of an auto-increment primary key.
	serial string
	// lock is the SELECT suffix that locks rows until the transaction ends.
	// SQLite needs none: it has one writer.
	lock string
	// numbered: placeholders are $1, $2, … (PostgreSQL).
	numbered bool
	// attempted is when a job began to run, in microseconds.
	attempted string
}

var (
	sqlite = dialect{name: "sqlite3", serial: "INTEGER PRIMARY KEY AUTOINCREMENT",
		attempted: "CAST(strftime('%s', river_job.attempted_at) AS INTEGER) * 1000000"}
	postgres = dialect{name: "postgres", serial: "BIGSERIAL PRIMARY KEY", lock: " FOR UPDATE", numbered: true,
		attempted: "EXTRACT(EPOCH FROM river_job.attempted_at) * 1000000"}
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
