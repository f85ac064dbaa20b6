package provider

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// Numbers of errors that MySQL and MariaDB share.
const (
	errNoDatabase      = 1049
	errNoTable         = 1146
	errIllegalGrant    = 1144
	errBadHash         = 1372
	errDatabaseDenied  = 1044
	errAccessDenied    = 1045
	errTableDenied     = 1142
	errSpecificDenied  = 1227
	errNoSuchThread    = 1094
	errTooManyConnects = 1040
)

// privilege is what a privilege may look like: one or more words.
var privilege = regexp.MustCompile(`^[A-Z]+( [A-Z]+)*$`)

// mysqlCaller grants on one server.
type mysqlCaller struct {
	provider api.Provider
	db       *sql.DB
}

func (f Factory) newMySQL(p api.Provider) (Caller, error) {
	host, port, err := net.SplitHostPort(p.Endpoint)
	if err != nil || host == "" || port == "" {
		return nil, fmt.Errorf("endpoint: %q is not host:port", p.Endpoint)
	}
	if err := f.Egress.CheckHost(host, port); err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	if p.MySQL == nil {
		return nil, fmt.Errorf("mysql: needed for a provider of type mysql: databases and users that may be granted")
	}
	for i, word := range p.MySQL.Privileges {
		if !privilege.MatchString(word) || slices.Contains([]string{"ALL", "ALL PRIVILEGES", "GRANT OPTION", "SUPER", "PROXY"}, word) {
			return nil, fmt.Errorf("mysql.privileges[%d]: %q cannot be allowed; name single privileges in capitals", i, word)
		}
	}
	for field, patterns := range map[string][]string{"databases": p.MySQL.Databases, "users": p.MySQL.Users} {
		for i, pattern := range patterns {
			if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
				return nil, fmt.Errorf("mysql.%s[%d]: %q is no pattern", field, i, pattern)
			}
		}
	}
	config := mysql.NewConfig()
	config.Net, config.Addr = "tcp", p.Endpoint
	config.TLSConfig = p.MySQL.TLS
	if config.TLSConfig == "" {
		config.TLSConfig = "preferred"
	}
	if !slices.Contains([]string{"false", "true", "skip-verify", "preferred"}, config.TLSConfig) {
		return nil, fmt.Errorf("mysql.tls: %q is none of false, true, skip-verify, preferred", p.MySQL.TLS)
	}
	config.Timeout, config.ReadTimeout, config.WriteTimeout = Timeout(p), Timeout(p), Timeout(p)
	config.InterpolateParams = true
	config.DialFunc = f.Egress.Dial
	// The driver's own words may hold names of users and hosts.
	config.Logger = &mysql.NopLogger{}
	err = config.Apply(mysql.BeforeConnect(func(_ context.Context, c *mysql.Config) error {
		secret, err := f.Credentials.Get(p.CredentialsRef)
		if err != nil {
			return misconfigured{err.Error()}
		}
		user, password, ok := strings.Cut(secret, ":")
		if !ok {
			return misconfigured{fmt.Sprintf("credential %q is not user:password", p.CredentialsRef)}
		}
		c.User, c.Passwd = user, password
		return nil
	}))
	if err != nil {
		return nil, fmt.Errorf("mysql: %w", err)
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, fmt.Errorf("mysql: %w", err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(8)
	db.SetConnMaxIdleTime(time.Minute)
	return &mysqlCaller{provider: p, db: db}, nil
}

// misconfigured is an error whose text a person may read.
type misconfigured struct{ message string }

func (m misconfigured) Error() string { return m.message }

// Close closes the connections.
func (c *mysqlCaller) Close() { _ = c.db.Close() }

// Call grants or revokes; both may be repeated.
func (c *mysqlCaller) Call(ctx context.Context, call Call) Result {
	ctx, cancel := context.WithTimeout(ctx, Timeout(c.provider))
	defer cancel()
	account, err := newAccount(c.provider, call.Parameters)
	if err != nil {
		if call.Op != Revoke {
			return Result{Outcome: Denied, Reason: ReasonParameters, Message: err.Error()}
		}
		// What was granted was right then, whatever is allowed now.
		if account.user == "" || !userName.MatchString(account.user) {
			return failed(ReasonParameters, err.Error(), false)
		}
	}
	conn, err := c.db.Conn(ctx)
	if err != nil {
		return failedStatement(err, false)
	}
	defer func() { _ = conn.Close() }()
	for _, ip := range call.IPs {
		if call.Op == Revoke {
			err = account.revoke(ctx, conn, ip)
		} else {
			err = account.grant(ctx, conn, ip)
		}
		if err != nil {
			return failedStatement(err, true)
		}
	}
	if call.Op == Revoke {
		return Result{Outcome: Done, Reason: ReasonRevoked, Sent: true}
	}
	return Result{Outcome: Done, Reason: ReasonGranted, Sent: true}
}

// failedStatement says what went wrong without the server's words.
func failedStatement(err error, sent bool) Result {
	var answer *mysql.MySQLError
	var own misconfigured
	var timeout net.Error
	switch {
	case errors.As(err, &own):
		return failed(ReasonConfiguration, own.message, sent)
	case errors.Is(err, ErrNotAllowed):
		return failed(ReasonRefusedHost, "the provider's host leads to an address that the centre may not connect to", sent)
	case errors.As(err, &answer):
		return refused(int(answer.Number), sent)
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return failed(ReasonTimeout, "the database did not answer in time", sent)
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, io.EOF), errors.Is(err, mysql.ErrInvalidConn):
		return failed(ReasonUnreachable, "the connection to the database broke", sent)
	default:
		return failed(ReasonUnreachable, "no connection to the database", sent)
	}
}

// refused says what an error's number means: whether the parameters are wrong,
// or it is the centre's, or the server's, trouble.
func refused(number int, sent bool) Result {
	number64 := fmt.Sprintf(" (error %d)", number)
	denied := func(message string) Result {
		return Result{Outcome: Denied, Reason: ReasonDenied, Message: message + number64, Sent: sent, Partial: true}
	}
	switch number {
	case errNoDatabase:
		return denied("there is no such database")
	case errNoTable:
		return denied("there is no such table")
	case errIllegalGrant:
		return denied("such privileges cannot be granted on this")
	case errBadHash:
		return denied("passwordHash is no hash for this server")
	case errAccessDenied, errDatabaseDenied, errTableDenied, errSpecificDenied:
		return failed(ReasonCredentials, "the database refuses the centre's own account, or it may not grant this"+number64, sent)
	case errTooManyConnects:
		return failed(ReasonThrottled, "the database has too many connections"+number64, sent)
	default:
		return failed(ReasonError, "the database refused the statement"+number64, sent)
	}
}
