package api

// ProviderType is the protocol of a provider.
type ProviderType string

const (
	// ProviderHTTP sends templated requests and evaluates the answers with CEL.
	ProviderHTTP ProviderType = "http"
	// ProviderMySQL is MySQL or MariaDB: CREATE USER, GRANT and DROP USER.
	ProviderMySQL ProviderType = "mysql"
	// ProviderCMDB is an HTTP provider with default requests: PUT and DELETE of
	// /v1/records/{ip}. DELETE of a missing record must be answered 2xx.
	ProviderCMDB ProviderType = "cmdb"
)

// Provider is the system that grants permissions: an endpoint and how to call it.
type Provider struct {
	Meta
	Type ProviderType `json:"type"`
	// Endpoint is a URL (http, cmdb: https://host[:port][/path]) or host:port
	// (mysql). The configuration of the centre must allow its host.
	Endpoint string `json:"endpoint"`
	// CredentialsRef is a key of the Secret that is mounted into the centre. http,
	// cmdb: a bearer token; mysql: user:password. The value never leaves the centre.
	CredentialsRef string `json:"credentialsRef,omitempty"`
	// AllowHTTP allows to send the credential to an endpoint without TLS (http, cmdb).
	AllowHTTP bool      `json:"allowHTTP,omitempty"`
	RateLimit RateLimit `json:"rateLimit"`
	// TimeoutSeconds bounds one call; default 10, at most 30.
	TimeoutSeconds int `json:"timeoutSeconds,omitempty"`
	// CanRevoke is true if the provider can revoke grants. Otherwise a grant is
	// Leaked when its pod ends.
	CanRevoke bool `json:"canRevoke"`
	// NodeScoped is true if the provider grants to the addresses of the node, not of
	// the pod.
	NodeScoped bool `json:"nodeScoped"`
	// Owners are the owners whose permissions may use the provider. An empty list
	// matches nobody, and * everybody.
	Owners []string `json:"owners,omitempty"`
	// OwnerParameters are patterns (* and ?) by owner and parameter: each permission
	// of the owner must have the parameter, with a value that matches one of them. An owner
	// without an entry may use all that the provider allows.
	OwnerParameters map[string]map[string][]string `json:"ownerParameters,omitempty"`
	// Retry bounds the calls of one attempt.
	Retry Retry      `json:"retry"`
	HTTP  *HTTPCalls `json:"http,omitempty"`
	MySQL *MySQLCall `json:"mysql,omitempty"`
}

// RateLimit limits all calls to a provider, of all replicas together.
type RateLimit struct {
	// PerSecond is at most 10000; default 10; values below 1 are allowed.
	PerSecond float64 `json:"perSecond"`
	// Burst is how many calls may follow a pause without delay; default 1.
	Burst int `json:"burst"`
}

// Retry configures retries of failed calls. Denied calls are not retried.
type Retry struct {
	// MaxCalls is how many calls of one attempt may fail before it is Failed, counted from the last
	// answer that a call is still being processed; default 5, at most 20.
	MaxCalls int `json:"maxCalls,omitempty"`
	// BackoffSeconds is the delay before the second call. It doubles with each call;
	// a random part of up to the same length is added. Default 2, at most 600.
	BackoffSeconds float64 `json:"backoffSeconds,omitempty"`
	// PollSeconds is the time between two polls of a pending decision; default 2.
	PollSeconds float64 `json:"pollSeconds,omitempty"`
	// PollTimeoutSeconds is after how long an attempt is Failed if the provider's decision is still
	// pending, or if the provider has been down for as long; the wait for the rate limit does not
	// count. A revocation that the provider accepted, and has not made after this time, is Leaked. Default 600.
	PollTimeoutSeconds float64 `json:"pollTimeoutSeconds,omitempty"`
}

// HTTPCalls are the requests of an HTTP provider. Poll is required if Grant has
// Pending, Revoke if the provider can revoke.
type HTTPCalls struct {
	Grant  HTTPCall  `json:"grant"`
	Poll   *HTTPCall `json:"poll,omitempty"`
	Revoke *HTTPCall `json:"revoke,omitempty"`
	// CA has the certificates, in PEM, of the authorities that the certificate of an https
	// endpoint is verified with; empty means those of the centre's image.
	CA string `json:"ca,omitempty"`
}

// HTTPCall is one request and how its answer is evaluated. ${…} in Path, Headers
// and strings of Body is a CEL expression over ip, ips, parameters, pod
// (cluster, namespace, name, uid, node, serviceAccount), key (the idempotency
// key) and kept. Values in a path are escaped. A string of Body that is a single
// expression is replaced by the value of the expression, of any type.
type HTTPCall struct {
	// Method is the HTTP method; default POST.
	Method string `json:"method,omitempty"`
	// Path is appended to the endpoint; it may contain a query.
	Path    string            `json:"path,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	// Body is sent as JSON; null sends no body.
	Body any `json:"body,omitempty"`
	// Granted is a CEL condition over status (a number), body (the JSON of the
	// answer) and headers. Conditions are evaluated in the order Granted, Pending,
	// Denied, and before the defaults; an answer that matches none is failed.
	// Default: any 2xx. For a revocation it means that the grant is revoked. A 404
	// that means that there is no such grant must be distinguished from one of a wrong
	// URL, for instance status == 200 || status == 404 && body.code == 'NoGrant'.
	Granted string `json:"granted,omitempty"`
	// Pending is a CEL condition like Granted: the provider decides later. Default:
	// never.
	Pending string `json:"pending,omitempty"`
	// Denied is a CEL condition like Granted: the provider rejected the parameters.
	// Default: 400, 409 and 422.
	Denied string `json:"denied,omitempty"`
	// Message is a CEL string over the same values: the error message for people,
	// cut at 200 characters.
	Message string `json:"message,omitempty"`
	// Keep are CEL expressions over the same values. Later calls read their values
	// in kept, for instance the number of a ticket.
	Keep map[string]string `json:"keep,omitempty"`
}

// MySQLCall restricts what a MySQL provider may grant. The parameters of a
// permission are user, passwordHash, privileges (comma-separated), database and
// table (default *).
type MySQLCall struct {
	// Privileges that permissions may request; default SELECT, INSERT, UPDATE and
	// DELETE.
	Privileges []string `json:"privileges,omitempty"`
	// Databases are patterns (* and ?) of the databases that permissions may name.
	// An empty list matches nothing.
	Databases []string `json:"databases"`
	// Users are patterns (* and ?) of the users that permissions may name. An empty
	// list matches nothing.
	Users []string `json:"users"`
	// TLS says whether connections are encrypted: true (the default) requires TLS and
	// verifies the certificate; skip-verify requires TLS with any certificate; preferred
	// uses TLS if the server offers it; false does not use it. With the last three,
	// whoever is on the path can read and change statements.
	TLS string `json:"tls,omitempty"`
	// CA has the certificates, in PEM, of the authorities that the certificate is
	// verified with; empty means those of the centre's image.
	CA string `json:"ca,omitempty"`
}

// List is a page of GET /v1/{providers,permissions,permissionsets}. The query
// parameters are limit (1 to 500, default 100), continue and search (part of the
// name, owner or description).
type List[T any] struct {
	Items    []T    `json:"items"`
	Continue string `json:"continue,omitempty"`
}

// AuditEntry is one change of a registered object or of a cluster. GET /v1/audit lists entries,
// newest first; its query parameters are kind, name, who, limit and continue.
type AuditEntry struct {
	ID   int64  `json:"id"`
	Time string `json:"time"`
	// Who is the authenticated user who made the change.
	Who string `json:"who"`
	// Verb is create, update or delete. Changes of applications are in their history.
	Verb string `json:"verb"`
	// Kind is provider, permission, permissionset or cluster.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Before is the object before the change, as JSON.
	Before string `json:"before,omitempty"`
	// After is the object after the change, as JSON.
	After string `json:"after,omitempty"`
}
