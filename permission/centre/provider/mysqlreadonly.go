package provider

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
)

// errReadOnly means that a server is read-only. After a failover, an open connection may lead to the former
// primary, and the centre's account may be allowed to write there, although the new primary does not get it.
var errReadOnly = errors.New("the database is read-only")

// requireWritable returns errReadOnly, and closes the connection, if its server is read-only.
func requireWritable(ctx context.Context, conn *sql.Conn) error {
	var value string
	if err := conn.QueryRowContext(ctx, "SELECT @@global.read_only").Scan(&value); err != nil {
		return err
	}
	if !isReadOnly(value) {
		return nil
	}
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	return errReadOnly
}

// isReadOnly evaluates the variable read_only: 0 or 1, or, since MariaDB 12.0, OFF or a mode.
func isReadOnly(value string) bool { return value != "0" && value != "OFF" }
