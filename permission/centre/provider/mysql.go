package provider

import (
	"cmp"
	"context"
	"crypto/tls"
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

// Error numbers that MySQL and MariaDB share.
const (
	errNoDatabase          = 1049
	errNoTable             = 1146
	errIllegalGrant        = 1144
	errBadHash             = 1372
	errDatabaseDenied      = 1044
	errAccessDenied        = 1045
	errTableDenied         = 1142
	errSpecificDenied      = 1227
	errNoSuchThread        = 1094
	errTooManyConnects     = 1040
	errTooManyUserConnects = 1203 // max_user_connections of the server
	errUserLimit           = 1226 // a limit of the account, for example MAX_USER_CONNECTIONS
	errDefiner             = 4006 // MySQL only
)

// privilege matches the name of a privilege: one or more words in capitals.
var privilege = regexp.MustCompile(`^[A-Z]+( [A-Z]+)*$`)

// maxIdle is how many connections are kept.
const maxIdle = 8

// mysqlClient calls a provider of type mysql.
type mysqlClient struct {
	provider api.Provider
	db       *sql.DB
}

func (f Factory) newMySQL(p api.Provider) (Client, error) {
	host, port, err := net.SplitHostPort(p.Endpoint)
	if err != nil || host == "" || port == "" {
		return nil, fmt.Errorf("endpoint: %q is not host:port", p.Endpoint)
	}
	if err := f.Egress.CheckHost(host, port); err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	if p.MySQL == nil {
		return nil, fmt.Errorf("mysql: required for a provider of type mysql; set mysql.databases and mysql.users")
	}
	for i, word := range p.MySQL.Privileges {
		if !privilege.MatchString(word) || slices.Contains([]string{"ALL", "ALL PRIVILEGES", "GRANT OPTION", "SUPER", "PROXY"}, word) {
			return nil, fmt.Errorf("mysql.privileges[%d]: %q is not allowed; list single privileges in capitals", i, word)
		}
	}
	for field, patterns := range map[string][]string{"databases": p.MySQL.Databases, "users": p.MySQL.Users} {
		for i, pattern := range patterns {
			if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
				return nil, fmt.Errorf("mysql.%s[%d]: %q is not a valid pattern; use * and ? as wildcards", field, i, pattern)
			}
		}
	}
	config := mysql.NewConfig()
	config.Net, config.Addr = "tcp", p.Endpoint
	if err := setTLS(config, p.MySQL, host); err != nil {
		return nil, err
	}
	config.Timeout, config.ReadTimeout, config.WriteTimeout = Timeout(p), Timeout(p), Timeout(p)
	config.InterpolateParams = true
	config.RejectReadOnly = true // closes a connection whose server became read-only
	config.DialFunc = f.Egress.Dial
	// The driver's log lines may contain names of users and hosts.
	config.Logger = &mysql.NopLogger{}
	err = config.Apply(mysql.BeforeConnect(func(_ context.Context, c *mysql.Config) error {
		secret, err := f.Credentials.Get(p.CredentialsRef)
		if err != nil {
			return configurationError{err.Error()}
		}
		user, password, ok := strings.Cut(secret, ":")
		if !ok {
			return configurationError{fmt.Sprintf("credential %q is not user:password", p.CredentialsRef)}
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
	// There is no SetMaxOpenConns: the caller bounds the calls in progress.
	db.SetMaxIdleConns(maxIdle)
	db.SetConnMaxIdleTime(time.Minute)
	return &mysqlClient{provider: p, db: db}, nil
}

// setTLS configures the encryption of connections to a host.
func setTLS(config *mysql.Config, call *api.MySQLCall, host string) error {
	mode := cmp.Or(call.TLS, "true")
	if !slices.Contains([]string{"false", "true", "skip-verify", "preferred"}, mode) {
		return fmt.Errorf("mysql.tls: %q is not one of true, skip-verify, preferred, false", call.TLS)
	}
	if call.CA == "" {
		config.TLSConfig = mode
		return nil
	}
	if mode != "true" {
		return fmt.Errorf("mysql.ca: no certificate is verified with mysql.tls %q; leave one of them out", mode)
	}
	authorities, err := authorities("mysql.ca", call.CA)
	if err != nil {
		return err
	}
	config.TLS = &tls.Config{RootCAs: authorities, ServerName: host, MinVersion: tls.VersionTLS12}
	return nil
}

// configurationError is an error whose text may be shown to users.
type configurationError struct{ message string }

func (m configurationError) Error() string { return m.message }

// Close closes the connections.
func (c *mysqlClient) Close() { _ = c.db.Close() }

// closeIdle closes the idle connections.
func (c *mysqlClient) closeIdle() {
	c.db.SetMaxIdleConns(0)
	c.db.SetMaxIdleConns(maxIdle)
}

// Call implements Client. Grants and revocations are idempotent.
func (c *mysqlClient) Call(ctx context.Context, call Call) Result {
	ctx, cancel := context.WithTimeout(ctx, Timeout(c.provider))
	defer cancel()
	account, err := newAccount(c.provider, call.Parameters)
	if err != nil {
		if call.Op != Revoke {
			return Result{Outcome: Denied, Reason: ReasonInvalidParameters, Message: err.Error()}
		}
		// A permission may be revoked although its parameters are no longer allowed. A
		// revocation needs only the user.
		if account.user == "" || !userName.MatchString(account.user) {
			return failed(ReasonInvalidParameters, err.Error(), false)
		}
	}
	conn, err := c.db.Conn(ctx)
	if err != nil {
		return failedStatement(err, false)
	}
	defer func() { _ = conn.Close() }()
	if err := requireWritable(ctx, conn); err != nil {
		if errors.Is(err, errReadOnly) {
			c.closeIdle()
		}
		return failedStatement(err, false)
	}
	for _, ip := range call.IPs {
		if call.Op == Revoke {
			err = account.revoke(ctx, conn, ip)
		} else {
			err = account.grant(ctx, conn, ip, call.Exclusive)
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

// failedStatement classifies an error without quoting the server.
func failedStatement(err error, sent bool) Result {
	var mysqlErr *mysql.MySQLError
	var configuration configurationError
	var timeout net.Error
	switch {
	case errors.As(err, &configuration):
		return failed(ReasonProviderMisconfigured, configuration.message, sent)
	case errors.Is(err, ErrNotAllowed):
		return failed(ReasonHostNotAllowed, "the provider's host resolves to an address that the centre must not connect to", sent)
	case errors.Is(err, errReadOnly):
		return failed(ReasonProviderUnreachable, errReadOnly.Error(), sent)
	case errors.As(err, &mysqlErr):
		return mysqlFailure(int(mysqlErr.Number), sent)
	case errors.Is(err, mysql.ErrNoTLS):
		return failed(ReasonProviderMisconfigured, "the database does not support TLS: configure it, or set mysql.tls to false if nobody else is on the network path", sent)
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return failed(ReasonProviderMisconfigured, "the certificate of the database is not trusted: set mysql.ca, and an endpoint with a name of the certificate", sent)
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return failed(ReasonProviderTimeout, "the database did not answer in time", sent)
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, io.EOF), errors.Is(err, mysql.ErrInvalidConn):
		return failed(ReasonProviderUnreachable, "the connection to the database was lost", sent)
	default:
		return failed(ReasonProviderUnreachable, "cannot connect to the database", sent)
	}
}

// mysqlFailure maps an error number to denied (wrong parameters) or failed (the
// centre's account or the server).
func mysqlFailure(number int, sent bool) Result {
	suffix := fmt.Sprintf(" (error %d)", number)
	denied := func(message string) Result {
		return Result{Outcome: Denied, Reason: ReasonDenied, Message: message + suffix, Sent: sent, Partial: true}
	}
	switch number {
	case errNoDatabase:
		return denied("the database does not exist; correct parameter database")
	case errNoTable:
		return denied("the table does not exist; correct parameter table")
	case errIllegalGrant:
		return denied("the privileges cannot be granted on this object; correct parameter privileges")
	case errBadHash:
		return denied("passwordHash is not a valid hash for this server")
	case errAccessDenied, errDatabaseDenied, errTableDenied, errSpecificDenied:
		return failed(ReasonCredentialsRejected, "the database rejects the centre's account, or the account must not grant this"+suffix, sent)
	case errDefiner:
		return failed(ReasonCredentialsRejected, "the user is the definer of a view, a routine, a trigger or an event: drop it, or give the centre's account the privilege "+
			"SET_USER_ID (MySQL 8.0) or ALLOW_NONEXISTENT_DEFINER (MySQL 8.2 and later)"+suffix, sent)
	case errTooManyConnects, errTooManyUserConnects, errUserLimit:
		return failed(ReasonProviderThrottled, "the database has too many connections, or limits those of the centre's account"+suffix, sent)
	default:
		return failed(ReasonProviderError, "the database rejected the statement"+suffix, sent)
	}
}
