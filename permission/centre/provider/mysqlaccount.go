package provider

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// Allowed forms of names and hashes. Every value in a statement matches one of
// them and is quoted.
var (
	userName     = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,32}$`)
	databaseName = regexp.MustCompile(`^[A-Za-z0-9_$-]{1,64}$`)
	nativeHash   = regexp.MustCompile(`^\*[0-9A-Fa-f]{40}$`)
	// sha2Hash is a caching_sha2_password hash as SHOW CREATE USER prints it with
	// print_identified_with_as_hex.
	sha2Hash = regexp.MustCompile(`^0x[0-9A-Fa-f]{40,256}$`)
)

// systemUsers are never granted, whatever the patterns allow.
var systemUsers = []string{"root", "mysql", "mariadb.sys", "mysql.sys", "mysql.session", "mysql.infoschema", "debian-sys-maint"}

// account is a user with privileges on a database or a table.
type account struct {
	user, hash, database, table string
	privileges                  []string
}

func checkMySQLParameters(p api.Provider, parameters map[string]string) error {
	for name := range parameters {
		if !slices.Contains([]string{"user", "passwordHash", "privileges", "database", "table"}, name) {
			return fmt.Errorf("%s: is not one of user, passwordHash, privileges, database, table", name)
		}
	}
	_, err := newAccount(p, parameters)
	return err
}

// newAccount validates parameters; errors begin with the name of the parameter.
func newAccount(p api.Provider, parameters map[string]string) (account, error) {
	a := account{user: parameters["user"], hash: parameters["passwordHash"], database: parameters["database"], table: tableOf(parameters)}
	switch {
	case !userName.MatchString(a.user):
		return a, fmt.Errorf("user: must have 1 to 32 characters of letters, digits, _ . -")
	case slices.Contains(systemUsers, strings.ToLower(a.user)) || !matchesAny(p.MySQL.Users, a.user):
		return a, fmt.Errorf("user: %q is not allowed by provider %q; allowed: %s", a.user, p.Name, strings.Join(p.MySQL.Users, ", "))
	case !nativeHash.MatchString(a.hash) && !sha2Hash.MatchString(a.hash):
		return a, fmt.Errorf("passwordHash: must be * and 40 hexadecimal digits (SELECT PASSWORD('…')), or 0x… for caching_sha2_password")
	case !databaseName.MatchString(a.database):
		return a, fmt.Errorf("database: must have 1 to 64 characters of letters, digits, _ $ -")
	case !matchesAny(p.MySQL.Databases, a.database):
		return a, fmt.Errorf("database: %q is not allowed by provider %q; allowed: %s", a.database, p.Name, strings.Join(p.MySQL.Databases, ", "))
	case a.table != "*" && !databaseName.MatchString(a.table):
		return a, fmt.Errorf("table: must be * or 1 to 64 characters of letters, digits, _ $ -")
	}
	for _, word := range privilegesOf(parameters) {
		if !slices.Contains(p.MySQL.Privileges, word) {
			return a, fmt.Errorf("privileges: %q is not allowed by provider %q; allowed: %s", word, p.Name, strings.Join(p.MySQL.Privileges, ", "))
		}
		a.privileges = append(a.privileges, word)
	}
	return a, nil
}

func tableOf(parameters map[string]string) string { return cmp.Or(parameters["table"], "*") }

func privilegesOf(parameters map[string]string) (privileges []string) {
	for word := range strings.SplitSeq(parameters["privileges"], ",") {
		privileges = append(privileges, strings.ToUpper(strings.Join(strings.Fields(word), " ")))
	}
	return privileges
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

// grant creates the user for an address and grants the privileges. An existing user, for
// instance of a leaked grant, gets the password and is unlocked; if exclusive, it loses its other
// privileges before.
func (a account) grant(ctx context.Context, conn *sql.Conn, ip string, exclusive bool) error {
	at, err := a.userAt(ip)
	if err != nil {
		return err
	}
	var version string
	if err := conn.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version); err != nil {
		return err
	}
	identified := at + " " + a.identified(strings.Contains(version, "MariaDB"))
	statements := []string{"CREATE USER IF NOT EXISTS " + identified}
	if exclusive {
		statements = append(statements, "REVOKE ALL PRIVILEGES, GRANT OPTION FROM "+at)
	}
	for _, statement := range append(statements, "ALTER USER "+identified+" ACCOUNT UNLOCK",
		"GRANT "+strings.Join(a.privileges, ", ")+" ON "+a.target()+" TO "+at) {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// revoke locks the user for an address, so that no session can reconnect, kills its sessions and drops it, also if a session
// cannot be killed. MySQL does not drop a user who has created a view, a routine, a trigger or an event.
func (a account) revoke(ctx context.Context, conn *sql.Conn, ip string) error {
	at, err := a.userAt(ip)
	if err != nil {
		return err
	}
	if _, err := conn.ExecContext(ctx, "ALTER USER IF EXISTS "+at+" ACCOUNT LOCK"); err != nil {
		return err
	}
	sessions, failure := a.sessions(ctx, conn, ip)
	for _, id := range sessions {
		_, err := conn.ExecContext(ctx, fmt.Sprintf("KILL CONNECTION %d", id))
		if mysqlErr, ok := errors.AsType[*mysql.MySQLError](err); ok && mysqlErr.Number == errNoSuchThread {
			continue
		}
		failure = errors.Join(failure, err)
	}
	_, err = conn.ExecContext(ctx, "DROP USER IF EXISTS "+at)
	return errors.Join(err, failure)
}

// sessions lists the ids of the user's sessions from an address. Without privilege PROCESS, PROCESSLIST has no
// sessions of other users, but reading INNODB_CMP is an error.
func (a account) sessions(ctx context.Context, conn *sql.Conn, ip string) ([]int64, error) {
	_, err := conn.ExecContext(ctx, "SELECT COUNT(*) FROM information_schema.INNODB_CMP")
	if mysqlErr, ok := errors.AsType[*mysql.MySQLError](err); ok && mysqlErr.Number == errSpecificDenied {
		return nil, configurationError{"the centre's account needs privilege PROCESS to find the open sessions of a revoked user"}
	} else if err != nil {
		return nil, err
	}
	rows, err := conn.QueryContext(ctx, "SELECT ID, HOST FROM information_schema.PROCESSLIST WHERE USER = ?", a.user)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var ids []int64
	for rows.Next() {
		var id int64
		var host string
		if err := rows.Scan(&id, &host); err != nil {
			return nil, err
		}
		if connectedFrom(ctx, host, ip) {
			ids = append(ids, id)
		}
	}
	return ids, rows.Err()
}

// connectedFrom reports whether a session's host (address or name, with or
// without port) is ip.
func connectedFrom(ctx context.Context, host, ip string) bool {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && host != ip {
		host = host[:i]
	}
	if host == ip {
		return true
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return false
	}
	// Without skip-name-resolve, the server shows names.
	addresses, err := net.DefaultResolver.LookupHost(ctx, host)
	return err == nil && slices.Contains(addresses, ip)
}

func (a account) userAt(ip string) (string, error) {
	if _, err := netip.ParseAddr(ip); err != nil {
		return "", fmt.Errorf("%q is not an IP address", ip)
	}
	return quote(a.user) + "@" + quote(ip), nil
}

func (a account) identified(mariaDB bool) string {
	switch {
	case sha2Hash.MatchString(a.hash):
		return "IDENTIFIED WITH caching_sha2_password AS " + a.hash
	case mariaDB:
		return "IDENTIFIED BY PASSWORD " + quote(a.hash)
	default:
		return "IDENTIFIED WITH mysql_native_password AS " + quote(a.hash)
	}
}

// target returns the ON clause. In a database name, _ and % are wildcards unless a
// table follows.
func (a account) target() string {
	if a.table == "*" {
		return "`" + strings.ReplaceAll(a.database, "_", `\_`) + "`.*"
	}
	return "`" + a.database + "`.`" + a.table + "`"
}

// quote quotes a string literal.
func quote(s string) string { return "'" + strings.NewReplacer("'", "''", `\`, `\\`).Replace(s) + "'" }
