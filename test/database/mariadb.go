package database

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	_ "github.com/go-sql-driver/mysql" // the driver "mysql"

	"github.com/breakwater-dev/breakwater/test/freeport"
)

var mariadb server

// MariaDBAdmin is a user with all privileges, MariaDBPassword its password.
const (
	MariaDBAdmin    = "grantor"
	MariaDBPassword = "grantor-password"
)

// MariaDB starts a server if needed and returns its host:port.
func MariaDB(t testing.TB) string {
	t.Helper()
	install, err1 := exec.LookPath("mariadb-install-db")
	program, err2 := exec.LookPath("mariadbd")
	need(t, err1 == nil && err2 == nil, "MariaDB", "mariadb-server")
	mariadb.once.Do(func() { mariadb.err = startMariaDB(install, program) })
	if mariadb.err != nil {
		t.Fatal(mariadb.err)
	}
	return fmt.Sprintf("127.0.0.1:%d", mariadb.port)
}

// MariaDBCA returns the certificate of the server, which is its own authority, in PEM.
func MariaDBCA(t testing.TB) string {
	t.Helper()
	MariaDB(t)
	pem, err := os.ReadFile(filepath.Join(mariadb.dir, "server.crt"))
	if err != nil {
		t.Fatal(err)
	}
	return string(pem)
}

func startMariaDB(install, program string) error {
	owner, err := credentialOf("mysql")
	if err != nil {
		return err
	}
	if err := mariadb.prepare("mariadb", owner); err != nil {
		return err
	}
	data, socket := filepath.Join(mariadb.dir, "data"), filepath.Join(mariadb.dir, "socket")
	if err := runCommand(command(owner, mariadb.dir, install, "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal", "--skip-test-db")); err != nil {
		return err
	}
	if mariadb.port, err = freeport.Find(context.Background()); err != nil {
		return err
	}
	certificate, key, err := writeCertificate(mariadb.dir)
	if err != nil {
		return err
	}
	server := command(owner, mariadb.dir, program, "--no-defaults", "--datadir="+data, "--socket="+socket, "--port="+strconv.Itoa(mariadb.port),
		"--bind-address=127.0.0.1", "--ssl-cert="+certificate, "--ssl-key="+key, "--skip-name-resolve", "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=32M", "--pid-file="+filepath.Join(mariadb.dir, "pid"))
	root := fmt.Sprintf("root@unix(%s)/", socket)
	if err := mariadb.start(server, func() error { return execute(root, "SELECT 1") }); err != nil {
		return err
	}
	return execute(root, "CREATE USER '"+MariaDBAdmin+"'@'127.0.0.1' IDENTIFIED BY '"+MariaDBPassword+"'",
		"GRANT ALL ON *.* TO '"+MariaDBAdmin+"'@'127.0.0.1' WITH GRANT OPTION")
}

func execute(address string, statements ...string) error {
	db, err := sql.Open("mysql", address)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	for _, s := range statements {
		if _, err := db.ExecContext(context.Background(), s); err != nil {
			return err
		}
	}
	return nil
}
