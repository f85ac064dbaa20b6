package provider

import (
	"bytes"
	"context"
	"database/sql"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/test/database"
)

func TestMain(m *testing.M) { database.Run(m) }

// hash returns the hash of "app-password".
func hash(t *testing.T, address string) string {
	t.Helper()
	var h string
	if err := admin(t, address).QueryRow("SELECT PASSWORD('app-password')").Scan(&h); err != nil {
		t.Fatal(err)
	}
	return h
}

func admin(t *testing.T, address string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", database.MariaDBAdmin+":"+database.MariaDBPassword+"@tcp("+address+")/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// connectAs opens the database as user app from a source address.
func connectAs(t *testing.T, address, source string) *sql.DB {
	t.Helper()
	config := mysql.NewConfig()
	config.User, config.Passwd, config.Net, config.Addr, config.DBName = "app", "app-password", "tcp", address, "shop_orders"
	config.Logger = &mysql.NopLogger{}
	config.DialFunc = func(ctx context.Context, network, to string) (net.Conn, error) {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
		return d.DialContext(ctx, network, to)
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// factory returns a Factory with the credentials of the database.
func factory(t *testing.T) Factory {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "db"), []byte(database.MariaDBAdmin+":"+database.MariaDBPassword+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	egress, err := NewEgress([]string{"127.0.0.1"}, []string{"127.0.0.0/8"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return Factory{Egress: egress, Credentials: Credentials{Dir: dir}}
}

func mariaDB(t *testing.T) (Client, string, api.Provider) {
	t.Helper()
	address := database.MariaDB(t)
	p := api.Provider{Meta: api.Meta{Name: "orders"}, Type: api.ProviderMySQL, Endpoint: address, CredentialsRef: "db", TimeoutSeconds: 10, CanRevoke: true,
		MySQL: &api.MySQLCall{Privileges: []string{"SELECT", "INSERT"}, Databases: []string{"shop_*"}, Users: []string{"app*"}, CA: database.MariaDBCA(t)}}
	client, err := factory(t).New(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"CREATE DATABASE IF NOT EXISTS shop_orders", "CREATE DATABASE IF NOT EXISTS shopXorders",
		"CREATE TABLE IF NOT EXISTS shop_orders.t (n INT)", "CREATE TABLE IF NOT EXISTS shopXorders.t (n INT)"} {
		if _, err := admin(t, address).Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	return client, address, p
}

func TestTheCertificateOfADatabaseIsVerified(t *testing.T) {
	_, _, p := mariaDB(t)
	f := factory(t)
	for name, tc := range map[string]struct {
		tls, ca string
		want    string
	}{
		"its own authority":     {"", p.MySQL.CA, ReasonRevoked},
		"no authority knows it": {"", "", ReasonProviderMisconfigured},
		"explicitly":            {"true", "", ReasonProviderMisconfigured},
		"any certificate":       {"skip-verify", "", ReasonRevoked},
		"without TLS":           {"false", "", ReasonRevoked},
	} {
		t.Run(name, func(t *testing.T) {
			p, call := p, *p.MySQL
			call.TLS, call.CA = tc.tls, tc.ca
			p.MySQL = &call
			client, err := f.New(p)
			if err != nil {
				t.Fatal(err)
			}
			r := client.Call(t.Context(), Call{Op: Revoke, IPs: []string{"127.0.0.2"}, Parameters: map[string]string{"user": "app-nobody"}})
			if r.Reason != tc.want || r.Sent != (tc.want == ReasonRevoked) {
				t.Errorf("got %+v, want %s", r, tc.want)
			}
		})
	}
}

// A server that does not know TLS gets no password.
func TestADatabaseWithoutTLSIsNotUsedByDefault(t *testing.T) {
	_, _, p := mariaDB(t)
	call := *p.MySQL
	call.CA = ""
	p.MySQL, p.Endpoint = &call, withoutTLS(t, p.Endpoint)
	client, err := factory(t).New(p)
	if err != nil {
		t.Fatal(err)
	}
	r := client.Call(t.Context(), Call{Op: Revoke, IPs: []string{"127.0.0.2"}, Parameters: map[string]string{"user": "app-nobody"}})
	if r.Reason != ReasonProviderMisconfigured || !strings.Contains(r.Message, "mysql.tls") {
		t.Errorf("got %+v", r)
	}
}

// withoutTLS returns the address of a proxy that removes the server's offer of TLS from its
// first packet, as somebody on the network path can.
func withoutTLS(t *testing.T, address string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go strip(client, address)
		}
	}()
	return listener.Addr().String()
}

func strip(client net.Conn, address string) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	packet := make([]byte, 512)
	n, err := server.Read(packet)
	if err != nil {
		return
	}
	// After the header of 4 bytes and the protocol's version: the server's version up to a
	// zero byte, the connection's id (4), a salt (8), a zero byte, and the capabilities,
	// of which bit 11 is TLS.
	end := bytes.IndexByte(packet[5:n], 0)
	packet[5+end+1+4+8+1+1] &^= 1 << (11 - 8)
	if _, err := client.Write(packet[:n]); err != nil {
		return
	}
	go func() { _, _ = io.Copy(server, client) }()
	_, _ = io.Copy(client, server)
}

// Otherwise the wait for a connection of the centre counts as a timeout of the database.
func TestConcurrentCallsOfADatabaseDoNotShareConnections(t *testing.T) {
	const calls = 32
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	client, err := factory(t).New(api.Provider{Type: api.ProviderMySQL, Endpoint: listener.Addr().String(), CredentialsRef: "db", TimeoutSeconds: 5, MySQL: &api.MySQLCall{}})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			client.Call(t.Context(), Call{Op: Revoke, IPs: []string{"127.0.0.2"}, Parameters: map[string]string{"user": "app"}})
		})
	}
	go func() { // the server answers nobody
		all.Wait()
		_ = listener.Close()
	}()
	var connections []net.Conn
	for len(connections) < calls {
		c, err := listener.Accept()
		if err != nil {
			break
		}
		connections = append(connections, c)
	}
	if len(connections) < calls {
		t.Errorf("%d connections for %d concurrent calls", len(connections), calls)
	}
	for _, c := range connections {
		_ = c.Close()
	}
	all.Wait()
}

func TestAnInvalidTLSOfMySQLIsRejected(t *testing.T) {
	_, _, p := mariaDB(t)
	for want, call := range map[string]api.MySQLCall{
		`mysql.tls: "yes" is not one of`:                              {TLS: "yes"},
		"mysql.ca: contains no certificate":                           {CA: "none"},
		`mysql.ca: no certificate is verified with mysql.tls "false"`: {TLS: "false", CA: p.MySQL.CA},
	} {
		p.MySQL = &call
		if _, err := factory(t).New(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestOnlyTheGrantedAddressCanConnect(t *testing.T) {
	client, address, _ := mariaDB(t)
	call := Call{Op: Grant, IPs: []string{"127.0.0.2"}, Parameters: map[string]string{
		"user": "app", "passwordHash": hash(t, address), "privileges": "select, INSERT", "database": "shop_orders"}}

	for range 2 { // Grants are idempotent.
		if r := client.Call(t.Context(), call); r.Outcome != Done {
			t.Fatalf("grant: %+v", r)
		}
	}
	inside := connectAs(t, address, "127.0.0.2")
	if _, err := inside.Exec("INSERT INTO t VALUES (1)"); err != nil {
		t.Fatalf("connection from the granted address: %v", err)
	}
	if _, err := inside.Exec("DROP TABLE t"); err == nil {
		t.Error("a privilege that was not granted is allowed")
	}
	if _, err := inside.Exec("SELECT * FROM shopXorders.t"); err == nil {
		t.Error("the underscore in the database name is a wildcard")
	}
	if err := connectAs(t, address, "127.0.0.3").Ping(); err == nil {
		t.Error("another address can connect")
	}

	session, err := inside.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close() }()
	call.Op = Revoke
	for range 2 {
		if r := client.Call(t.Context(), call); r.Outcome != Done {
			t.Fatalf("revoke: %+v", r)
		}
	}
	if err := session.PingContext(t.Context()); err == nil {
		t.Error("a session outlives the revocation")
	}
	if err := connectAs(t, address, "127.0.0.2").Ping(); err == nil {
		t.Error("the address can connect after the revocation")
	}
}

// MySQL does not drop a user who is the definer of a view, and a pod may create views.
func TestAUserWhoCannotBeDroppedCannotConnect(t *testing.T) {
	_, address, p := mariaDB(t)
	p.TimeoutSeconds = 1
	client, err := factory(t).New(p)
	if err != nil {
		t.Fatal(err)
	}
	call := Call{Op: Grant, IPs: []string{"127.0.0.8"}, Parameters: map[string]string{
		"user": "app", "passwordHash": hash(t, address), "privileges": "SELECT", "database": "shop_orders"}}
	connected := func() bool { return connectAs(t, address, "127.0.0.8").Ping() == nil }
	if r := client.Call(t.Context(), call); r.Outcome != Done || !connected() {
		t.Fatalf("grant: %+v, connected: %t", r, connected())
	}
	inside, err := connectAs(t, address, "127.0.0.8").Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = inside.Close() }()
	lock, err := admin(t, address).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// A user is dropped from this table, too.
	if _, err := lock.ExecContext(t.Context(), "LOCK TABLES mysql.db READ"); err != nil {
		t.Fatal(err)
	}
	call.Op = Revoke
	if r := client.Call(t.Context(), call); r.Outcome != Failed {
		t.Errorf("revoke: %+v, want Failed", r)
	}
	if err := inside.PingContext(t.Context()); err == nil || connected() {
		t.Errorf("the session: %v; a new one can connect: %t", err, connected())
	}
	if _, err := lock.ExecContext(t.Context(), "UNLOCK TABLES"); err != nil {
		t.Fatal(err)
	}
	if r := client.Call(t.Context(), call); r.Outcome != Done {
		t.Errorf("revoke again: %+v", r)
	}
}

// limited returns a client whose account has only these privileges.
func limited(t *testing.T, address string, p api.Provider, privileges string) Client {
	t.Helper()
	for _, s := range []string{"CREATE OR REPLACE USER 'limited'@'127.0.0.1' IDENTIFIED BY 'limited-password'", "GRANT " + privileges + " ON *.* TO 'limited'@'127.0.0.1'"} {
		if _, err := admin(t, address).Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	f := factory(t)
	if err := os.WriteFile(filepath.Join(f.Credentials.Dir, "limited"), []byte("limited:limited-password"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.CredentialsRef = "limited"
	client, err := f.New(p)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// The account of the centre may lack the privilege to end sessions, or to see them.
func TestAUserWhoseSessionsCannotBeEndedIsDropped(t *testing.T) {
	_, address, p := mariaDB(t)
	db := admin(t, address)
	for privileges, want := range map[string]string{"CREATE USER, PROCESS": ReasonProviderError, "CREATE USER": ReasonProviderMisconfigured} {
		t.Run(privileges, func(t *testing.T) {
			for _, s := range []string{"CREATE USER 'app'@'127.0.0.10' IDENTIFIED BY 'app-password'", "GRANT SELECT ON shop_orders.* TO 'app'@'127.0.0.10'"} {
				if _, err := db.Exec(s); err != nil {
					t.Fatal(err)
				}
			}
			client := limited(t, address, p, privileges)
			if err := connectAs(t, address, "127.0.0.10").Ping(); err != nil { // its session stays open
				t.Fatal(err)
			}
			r := client.Call(t.Context(), Call{Op: Revoke, IPs: []string{"127.0.0.10"}, Parameters: map[string]string{"user": "app"}})
			if r.Outcome != Failed || r.Reason != want {
				t.Errorf("revoke: %+v, want %s", r, want)
			}
			var users int
			if err := db.QueryRow("SELECT COUNT(*) FROM mysql.user WHERE User = 'app' AND Host = '127.0.0.10'").Scan(&users); err != nil || users != 0 {
				t.Errorf("%d users after the revocation, %v", users, err)
			}
		})
	}
}

func TestTheErrorAboutADefinerNamesThePrivilege(t *testing.T) {
	r := failedStatement(&mysql.MySQLError{Number: 4006}, true)
	if r.Outcome != Failed || r.Reason != ReasonCredentialsRejected || !strings.Contains(r.Message, "ALLOW_NONEXISTENT_DEFINER") {
		t.Errorf("got %+v", r)
	}
}

// Otherwise a limit that is too low opens the breaker.
func TestALimitOfConnectionsToADatabaseIsNoOutage(t *testing.T) {
	for _, number := range []uint16{1040, 1203, 1226} {
		if r := failedStatement(&mysql.MySQLError{Number: number}, false); r.Outcome != Failed || r.Reason != ReasonProviderThrottled {
			t.Errorf("error %d: %+v", number, r)
		}
	}
}

func TestAGrantUnlocksAUserWhoCouldNotBeDropped(t *testing.T) {
	client, address, _ := mariaDB(t)
	call := Call{Op: Grant, IPs: []string{"127.0.0.9"}, Parameters: map[string]string{
		"user": "app", "passwordHash": hash(t, address), "privileges": "SELECT", "database": "shop_orders"}}
	if _, err := admin(t, address).Exec("CREATE USER 'app'@'127.0.0.9' ACCOUNT LOCK"); err != nil {
		t.Fatal(err)
	}
	if r := client.Call(t.Context(), call); r.Outcome != Done {
		t.Fatalf("grant: %+v", r)
	}
	if err := connectAs(t, address, "127.0.0.9").Ping(); err != nil {
		t.Errorf("connect: %v", err)
	}
}

func TestRevokingOneAddressKeepsSessionsOfAnother(t *testing.T) {
	client, address, _ := mariaDB(t)
	call := Call{Op: Grant, IPs: []string{"127.0.0.4", "127.0.0.5"}, Parameters: map[string]string{
		"user": "app", "passwordHash": hash(t, address), "privileges": "SELECT", "database": "shop_orders"}}
	if r := client.Call(t.Context(), call); r.Outcome != Done {
		t.Fatalf("grant: %+v", r)
	}
	other, err := connectAs(t, address, "127.0.0.5").Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	call.Op, call.IPs = Revoke, []string{"127.0.0.4"}
	if r := client.Call(t.Context(), call); r.Outcome != Done {
		t.Fatalf("revoke: %+v", r)
	}
	if err := other.PingContext(t.Context()); err != nil {
		t.Errorf("session of the other address: %v", err)
	}
}

// A user may be left over from a leaked grant, or created by hand.
func TestAGrantReplacesThePasswordAndThePrivilegesOfAnExistingUser(t *testing.T) {
	client, address, _ := mariaDB(t)
	db := admin(t, address)
	for _, s := range []string{"CREATE USER 'app'@'127.0.0.7' IDENTIFIED BY 'an-old-password'", "GRANT DELETE ON shop_orders.* TO 'app'@'127.0.0.7'",
		"GRANT SELECT ON shopXorders.* TO 'app'@'127.0.0.7' WITH GRANT OPTION"} {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	call := Call{Op: Grant, IPs: []string{"127.0.0.7"}, Exclusive: true, Parameters: map[string]string{
		"user": "app", "passwordHash": hash(t, address), "privileges": "SELECT", "database": "shop_orders"}}
	if r := client.Call(t.Context(), call); r.Outcome != Done {
		t.Fatalf("grant: %+v", r)
	}
	inside := connectAs(t, address, "127.0.0.7")
	if _, err := inside.Exec("SELECT * FROM t"); err != nil {
		t.Fatalf("the granted privilege: %v", err)
	}
	for _, s := range []string{"DELETE FROM t", "SELECT * FROM shopXorders.t"} {
		if _, err := inside.Exec(s); err == nil {
			t.Errorf("%s is allowed", s)
		}
	}
	// Another permission of the same user keeps the privileges of the first.
	call.Exclusive, call.Parameters["privileges"] = false, "INSERT"
	if r := client.Call(t.Context(), call); r.Outcome != Done {
		t.Fatalf("second grant: %+v", r)
	}
	again := connectAs(t, address, "127.0.0.7")
	for _, s := range []string{"INSERT INTO t VALUES (1)", "SELECT * FROM t"} {
		if _, err := again.Exec(s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
}

func TestADatabaseErrorIsClassifiedAsDeniedOrFailed(t *testing.T) {
	client, address, p := mariaDB(t)
	right := map[string]string{"user": "app", "passwordHash": hash(t, address), "privileges": "SELECT", "database": "shop_orders"}
	with := func(name, value string) map[string]string {
		changed := map[string]string{}
		for k, v := range right {
			changed[k] = v
		}
		changed[name] = value
		return changed
	}
	for name, tc := range map[string]struct {
		parameters map[string]string
		outcome    Outcome
		reason     string
	}{
		"unknown table":                 {with("table", "nothing"), Denied, ReasonDenied},
		"user outside the patterns":     {with("user", "other"), Denied, ReasonInvalidParameters},
		"root":                          {with("user", "root"), Denied, ReasonInvalidParameters},
		"database outside the patterns": {with("database", "mysql"), Denied, ReasonInvalidParameters},
		"privilege that is not allowed": {with("privileges", "SELECT, DROP"), Denied, ReasonInvalidParameters},
		"password instead of a hash":    {with("passwordHash", "app-password"), Denied, ReasonInvalidParameters},
		"SQL in the database name":      {with("database", "shop_`; DROP TABLE t; --"), Denied, ReasonInvalidParameters},
		"quotes in the user name":       {with("user", "app'@'%"), Denied, ReasonInvalidParameters},
	} {
		t.Run(name, func(t *testing.T) {
			r := client.Call(t.Context(), Call{Op: Grant, IPs: []string{"127.0.0.6"}, Parameters: tc.parameters})
			if r.Outcome != tc.outcome || r.Reason != tc.reason {
				t.Errorf("got %+v, want %s %s", r, tc.outcome, tc.reason)
			}
		})
	}

	// Other errors are failed, and the message contains no credential.
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "db"), []byte(database.MariaDBAdmin+":not-the-password"), 0o600); err != nil {
		t.Fatal(err)
	}
	egress, _ := NewEgress([]string{"127.0.0.1"}, []string{"127.0.0.0/8"}, nil)
	wrong, err := Factory{Egress: egress, Credentials: Credentials{Dir: dir}}.New(p)
	if err != nil {
		t.Fatal(err)
	}
	r := wrong.Call(t.Context(), Call{Op: Grant, IPs: []string{"127.0.0.6"}, Parameters: right})
	if r.Outcome != Failed || r.Reason != ReasonCredentialsRejected || strings.Contains(r.Message, "not-the-password") || strings.Contains(r.Message, database.MariaDBAdmin) {
		t.Errorf("wrong credentials: %+v", r)
	}
	p.Endpoint = "127.0.0.1:1"
	unreachable, err := Factory{Egress: egress, Credentials: Credentials{Dir: dir}}.New(p)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if r := unreachable.Call(ctx, Call{Op: Grant, IPs: []string{"127.0.0.6"}, Parameters: right}); r.Outcome != Failed || r.Sent {
		t.Errorf("unreachable server: %+v", r)
	}
}
