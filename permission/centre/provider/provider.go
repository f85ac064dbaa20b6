// Package provider calls those who grant: by HTTP, with templates and CEL, and
// MySQL. A call ends in a Result that says whether it was granted, denied for
// what was asked, or failed for other reasons; neither a credential nor a raw
// answer leaves this package.
package provider

import (
	"context"
	"fmt"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// Op is what a provider is asked for.
type Op string

// The operations.
const (
	Grant  Op = "grant"
	Poll   Op = "poll"
	Revoke Op = "revoke"
)

// Call is one call's content.
type Call struct {
	Op Op
	// Key is the same for every repetition of this call.
	Key         string
	Application string
	Pod         api.ApplicationRequest
	// IPs are the addresses to grant to: the pod's, or its node's.
	IPs        []string
	Parameters map[string]string
	// Kept is what earlier answers gave to keep.
	Kept map[string]any
}

// Outcome of a call.
type Outcome string

// The outcomes. Done is Granted or, of a revocation, that nothing is left.
const (
	Done    Outcome = "done"
	Pending Outcome = "pending"
	Denied  Outcome = "denied"
	Failed  Outcome = "failed"
)

// Reasons of results, for states, history and metrics.
const (
	ReasonGranted       = "Granted"
	ReasonRevoked       = "Revoked"
	ReasonPending       = "Pending"
	ReasonDenied        = "Denied"
	ReasonUnreachable   = "ProviderUnreachable"
	ReasonTimeout       = "ProviderTimeout"
	ReasonError         = "ProviderError"
	ReasonThrottled     = "ProviderThrottled"
	ReasonCredentials   = "CredentialsRefused"
	ReasonConfiguration = "ProviderMisconfigured"
	ReasonRefusedHost   = "HostNotAllowed"
	ReasonParameters    = "BadParameters"
)

// Result of a call.
type Result struct {
	Outcome Outcome
	Reason  string
	Message string
	// RetryAfter is what the provider asked for; zero when it did not.
	RetryAfter time.Duration
	// Kept is what the answer gave to keep.
	Kept map[string]any
	// Sent: the provider may have seen the call.
	Sent bool
	// Partial: denied, but something of it may have been granted.
	Partial bool
}

// Caller calls one provider.
type Caller interface {
	Call(ctx context.Context, call Call) Result
}

// Timeout of a call to a provider.
func Timeout(p api.Provider) time.Duration {
	return time.Duration(p.TimeoutSeconds) * time.Second
}

// Factory makes callers.
type Factory struct {
	Egress      *Egress
	Credentials Credentials
}

// New makes a provider's caller, or says what is wrong with the provider.
func (f Factory) New(p api.Provider) (Caller, error) {
	switch p.Type {
	case api.ProviderHTTP, api.ProviderCMDB:
		return f.newHTTP(p)
	case api.ProviderMySQL:
		return f.newMySQL(p)
	default:
		return nil, fmt.Errorf("type: %q is none of http, mysql, cmdb", p.Type)
	}
}

// Subject is what two permissions share when the provider cannot tell their
// grants to one address apart: taking one back takes the other back too.
func Subject(p api.Provider, permission api.Permission) string {
	if p.Type == api.ProviderMySQL {
		return "user " + permission.Parameters["user"]
	}
	return permission.Name
}

// Check says what is wrong with a permission's parameters for a provider.
func (f Factory) Check(p api.Provider, parameters map[string]string) error {
	if p.Type == api.ProviderMySQL {
		return checkMySQLParameters(p, parameters)
	}
	return nil
}

func failed(reason, message string, sent bool) Result {
	return Result{Outcome: Failed, Reason: reason, Message: message, Sent: sent}
}
