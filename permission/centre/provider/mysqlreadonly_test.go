package provider

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"
)

// setReadOnly makes the database read-only, as a failover does with a former primary, until the test ends.
func setReadOnly(t *testing.T, address string) {
	t.Helper()
	db := admin(t, address)
	if _, err := db.Exec("SET GLOBAL read_only = 1"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := db.Exec("SET GLOBAL read_only = 0"); err != nil {
			t.Error(err)
		}
	})
}

// The account of the centre may be allowed to write in a read-only database. A user whom it drops there still
// exists at the new primary.
func TestAReadOnlyDatabaseIsNotUsed(t *testing.T) {
	client, address, _ := mariaDB(t)
	call := Call{Op: Revoke, IPs: []string{"127.0.0.11"}, Parameters: map[string]string{"user": "app-nobody"}}
	if r := client.Call(t.Context(), call); r.Outcome != Done {
		t.Fatalf("revoke: %+v", r)
	}
	db := client.(*mysqlClient).db
	var idle []*sql.Conn
	for range 3 {
		c, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		idle = append(idle, c)
	}
	for _, c := range idle {
		_ = c.Close()
	}
	setReadOnly(t, address)
	r := client.Call(t.Context(), call)
	if r.Outcome != Failed || r.Reason != ReasonProviderUnreachable || r.Sent || r.Message != "the database is read-only" {
		t.Errorf("revoke in a read-only database: %+v, want Failed", r)
	}
	if open := db.Stats().OpenConnections; open != 0 {
		t.Errorf("%d connections to a read-only database stay open", open)
	}
}

func TestAConnectionToADatabaseThatBecomesReadOnlyIsClosed(t *testing.T) {
	_, address, p := mariaDB(t)
	db := limited(t, address, p, "CREATE USER, PROCESS").(*mysqlClient).db
	setReadOnly(t, address)
	if _, err := db.Exec("DROP USER IF EXISTS 'app-nobody'@'127.0.0.11'"); !errors.Is(err, driver.ErrBadConn) {
		t.Errorf("drop: %v", err)
	}
	if open := db.Stats().OpenConnections; open != 0 {
		t.Errorf("%d connections to a read-only database stay open", open)
	}
}

// MySQL and MariaDB before 12.0 have a Boolean.
func TestTheValueOfReadOnlyIsThatOfTheServer(t *testing.T) {
	for value, want := range map[string]bool{"0": false, "OFF": false, "1": true, "ON": true, "NO_LOCK": true, "NO_LOCK_NO_ADMIN": true} {
		if got := isReadOnly(value); got != want {
			t.Errorf("read_only = %s: %t", value, got)
		}
	}
}
