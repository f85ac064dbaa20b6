// Package provider calls providers: by HTTP, with templates and CEL, or MySQL.
// The Result of a call is done, pending, denied (wrong parameters) or failed (any
// other reason). Credentials and raw responses do not leave this package.
package provider

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// Op is an operation of a provider.
type Op string

// The operations.
const (
	Grant  Op = "grant"
	Poll   Op = "poll"
	Revoke Op = "revoke"
)

// Call is the content of one call.
type Call struct {
	Op Op
	// Key is the idempotency key; all retries of the call have the same key.
	Key         string
	Application string
	Pod         api.ApplicationRequest
	// IPs are the addresses to grant to: the pod's, or its node's.
	IPs        []string
	Parameters map[string]string
	// Kept holds the values that earlier responses gave (field keep).
	Kept map[string]any
	// Exclusive: no other permission of the same database user is granted to the addresses.
	Exclusive bool
}

// Outcome of a call.
type Outcome string

// The outcomes. Done means granted or revoked.
const (
	Done    Outcome = "done"
	Pending Outcome = "pending"
	Denied  Outcome = "denied"
	Failed  Outcome = "failed"
)

// Reasons of results in states, history and metrics.
const (
	ReasonGranted               = "Granted"
	ReasonRevoked               = "Revoked"
	ReasonPending               = "Pending"
	ReasonDenied                = "Denied"
	ReasonProviderUnreachable   = "ProviderUnreachable"
	ReasonProviderTimeout       = "ProviderTimeout"
	ReasonProviderError         = "ProviderError"
	ReasonProviderThrottled     = "ProviderThrottled"
	ReasonCredentialsRejected   = "CredentialsRejected"
	ReasonProviderMisconfigured = "ProviderMisconfigured"
	ReasonHostNotAllowed        = "HostNotAllowed"
	ReasonInvalidParameters     = "InvalidParameters"
)

// Result of a call.
type Result struct {
	Outcome Outcome
	Reason  string
	Message string
	// RetryAfter is the delay that the provider asked for, or zero.
	RetryAfter time.Duration
	// Kept holds the values that the response gave for later calls.
	Kept map[string]any
	// Sent: the provider may have received the call.
	Sent bool
	// Partial: the call was denied, but a part of it may have been granted.
	Partial bool
}

// Client calls one provider.
type Client interface {
	Call(ctx context.Context, call Call) Result
}

// Timeout returns the timeout of a call to a provider.
func Timeout(p api.Provider) time.Duration {
	return time.Duration(p.TimeoutSeconds) * time.Second
}

// Factory creates clients.
type Factory struct {
	Egress      *Egress
	Credentials Credentials
}

// New creates the client of a provider. An error begins with the invalid field.
func (f Factory) New(p api.Provider) (Client, error) {
	switch p.Type {
	case api.ProviderHTTP, api.ProviderCMDB:
		return f.newHTTP(p)
	case api.ProviderMySQL:
		return f.newMySQL(p)
	default:
		return nil, fmt.Errorf("type: %q is not one of http, mysql, cmdb", p.Type)
	}
}

// SameUser reports whether two permissions of a provider are for the same user of a database.
func SameUser(p api.Provider, parameters, other map[string]string) bool {
	return p.Type == api.ProviderMySQL && parameters["user"] == other["user"]
}

// comparer is a client that compares the requests of calls.
type comparer interface {
	SameRequest(ctx context.Context, call, other Call) bool
}

// RevokesAlso reports whether a revocation would also remove another grant of the provider, of any permission, at its
// addresses. other is the revocation of that grant, with the same pod and key. A database drops the user, whatever its
// privileges are. Another provider cannot distinguish grants with the same request.
func RevokesAlso(ctx context.Context, p api.Provider, c Client, revoke, other Call) bool {
	if p.Type == api.ProviderMySQL {
		return SameUser(p, revoke.Parameters, other.Parameters)
	}
	// A value that no response to one of the grants has given yet may be that of the other one.
	revoke.Kept, other.Kept = withDefaults(revoke.Kept, other.Kept), withDefaults(other.Kept, revoke.Kept)
	return sameRequest(ctx, c, revoke, other)
}

func sameRequest(ctx context.Context, c Client, call, other Call) bool {
	if maps.Equal(call.Parameters, other.Parameters) && reflect.DeepEqual(call.Kept, other.Kept) {
		return true
	}
	requests, ok := c.(comparer)
	// A request that is interrupted cannot be built, so it would be different. The cost limit bounds the evaluation.
	return ok && requests.SameRequest(context.WithoutCancel(ctx), call, other)
}

func withDefaults(kept, defaults map[string]any) map[string]any {
	all := map[string]any{}
	maps.Copy(all, defaults)
	maps.Copy(all, kept)
	return all
}

// Includes reports whether a grant allows all that another one allows, if RevokesAlso is true for them. Both are given by
// their revocations. The privileges of all grants of a database user are added.
func Includes(ctx context.Context, p api.Provider, c Client, revoke, other Call) bool {
	if p.Type != api.ProviderMySQL {
		// RevokesAlso assumes a value that only one of the grants has.
		sameKeys := maps.EqualFunc(revoke.Kept, other.Kept, func(any, any) bool { return true })
		return sameKeys || sameRequest(ctx, c, revoke, other)
	}
	privileges, table := privilegesOf(revoke.Parameters), tableOf(revoke.Parameters)
	return revoke.Parameters["database"] == other.Parameters["database"] && (table == "*" || table == tableOf(other.Parameters)) &&
		!slices.ContainsFunc(privilegesOf(other.Parameters), func(word string) bool { return !slices.Contains(privileges, word) })
}

// Check validates a permission's parameters. An error begins with the parameter.
func (f Factory) Check(p api.Provider, parameters map[string]string) error {
	if p.Type == api.ProviderMySQL {
		return checkMySQLParameters(p, parameters)
	}
	return nil
}

func failed(reason, message string, sent bool) Result {
	return Result{Outcome: Failed, Reason: reason, Message: message, Sent: sent}
}
