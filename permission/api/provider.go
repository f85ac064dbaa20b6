package api

// ProviderType says how a provider is spoken to.
type ProviderType string

const (
	// ProviderHTTP takes a templated request, judged by CEL expressions.
	ProviderHTTP ProviderType = "http"
	// ProviderMySQL is MySQL or MariaDB, by CREATE USER, GRANT and DROP USER.
	ProviderMySQL ProviderType = "mysql"
	// ProviderCMDB is an HTTP provider whose requests have defaults: PUT and
	// DELETE of /v1/records/{ip}.
	ProviderCMDB ProviderType = "cmdb"
)

// Provider is what grants: an endpoint and how to use it.
type Provider struct {
	Meta
	Type ProviderType `json:"type"`
	// Endpoint is a URL (http, cmdb: https://host[:port][/path]) or host:port
	// (mysql). Its host must be one of those the centre is configured to call.
	Endpoint string `json:"endpoint"`
	// CredentialsRef names a Secret key that is mounted into the centre. The
	// value never leaves it. http, cmdb: a bearer token; mysql: user:password.
	CredentialsRef string    `json:"credentialsRef,omitempty"`
	RateLimit      RateLimit `json:"rateLimit"`
	// TimeoutSeconds bounds one call; 10 unless told, at most 30.
	TimeoutSeconds int `json:"timeoutSeconds,omitempty"`
	// CanRevoke: what was granted can be taken back. Where it cannot, a grant
	// whose pod went is Leaked.
	CanRevoke bool `json:"canRevoke"`
	// NodeScoped: it grants to the node's addresses, not to the pod's.
	NodeScoped bool `json:"nodeScoped"`
	// Owners are those whose permissions may use it; everybody's may when it is empty.
	Owners []string `json:"owners,omitempty"`
	// Retry bounds the calls of one attempt.
	Retry Retry      `json:"retry"`
	HTTP  *HTTPCalls `json:"http,omitempty"`
	MySQL *MySQLCall `json:"mysql,omitempty"`
}

// RateLimit holds for all calls to a provider, of all replicas together.
type RateLimit struct {
	// PerSecond is at most 10000 and 10 unless told; it may be below 1.
	PerSecond float64 `json:"perSecond"`
	// Burst is how many calls may come at once after a pause; 1 unless told.
	Burst int `json:"burst"`
}

// Retry is for what failed; what is denied is not tried again.
type Retry struct {
	// MaxCalls of one attempt before it is Failed; 5 unless told, at most 20.
	MaxCalls int `json:"maxCalls,omitempty"`
	// BackoffSeconds before the second call; it doubles with each, and up to
	// as much again is added at random. 2 unless told, at most 600.
	BackoffSeconds float64 `json:"backoffSeconds,omitempty"`
	// PollSeconds between two polls of a provider that decides later; 2 unless
	// told. PollTimeoutSeconds is when it is Failed without a decision; 600
	// unless told.
	PollSeconds        float64 `json:"pollSeconds,omitempty"`
	PollTimeoutSeconds float64 `json:"pollTimeoutSeconds,omitempty"`
}

// HTTPCalls are the requests of an HTTP provider. Poll is needed when Grant
// has Pending, Revoke when the provider can revoke.
type HTTPCalls struct {
	Grant  HTTPCall  `json:"grant"`
	Poll   *HTTPCall `json:"poll,omitempty"`
	Revoke *HTTPCall `json:"revoke,omitempty"`
}

// HTTPCall is one request and how its answer is read. ${…} in Path, Headers
// and strings of Body is a CEL expression over ip, ips, parameters, pod
// (cluster, namespace, name, uid, node, serviceAccount), key (the idempotency
// key) and kept. What is put into a path is escaped; a string of Body that is
// one expression becomes its value, of whatever type.
type HTTPCall struct {
	// Method is POST unless told.
	Method string `json:"method,omitempty"`
	// Path is appended to the endpoint; it may hold a query.
	Path    string            `json:"path,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	// Body is sent as JSON; nothing is sent when it is null.
	Body any `json:"body,omitempty"`
	// Granted, Pending and Denied are CEL conditions over status (a number),
	// body (the JSON of the answer) and headers, asked in this order. Unless
	// told, 2xx is granted; none is pending; 4xx is denied but for 401, 407,
	// 408, 425 and 429, which with all else are failed. Of a revocation
	// Granted says that it is done, and 404 and 410 are done too.
	Granted string `json:"granted,omitempty"`
	Pending string `json:"pending,omitempty"`
	Denied  string `json:"denied,omitempty"`
	// Message is a CEL string over the same: what a person is told of a
	// refusal, cut at 200 characters.
	Message string `json:"message,omitempty"`
	// Keep are CEL expressions over the same, whose values later calls find in
	// kept: the number of a ticket, for instance.
	Keep map[string]string `json:"keep,omitempty"`
}

// MySQLCall is what a MySQL provider may grant. A permission's parameters are
// user, passwordHash, privileges (a list with commas) and database, table
// (* unless told).
type MySQLCall struct {
	// Privileges that permissions may ask for; SELECT, INSERT, UPDATE and
	// DELETE unless told.
	Privileges []string `json:"privileges,omitempty"`
	// Databases and Users are patterns (* and ?) of what may be granted, and
	// to whom. Nothing matches an empty list.
	Databases []string `json:"databases"`
	Users     []string `json:"users"`
	// TLS is the driver's word for it: false, true, skip-verify or preferred;
	// preferred unless told.
	TLS string `json:"tls,omitempty"`
}

// List is a page of GET /v1/{providers,permissions,permissionsets}, which
// take limit (1 to 500, 100 unless told), continue and search (a part of the
// name, owner or description).
type List[T any] struct {
	Items    []T    `json:"items"`
	Continue string `json:"continue,omitempty"`
}

// AuditEntry says who changed what, when. GET /v1/audit takes kind, name, who,
// limit and continue; newest first.
type AuditEntry struct {
	ID   int64  `json:"id"`
	Time string `json:"time"`
	Who  string `json:"who"`
	// Verb is create, update or delete. What was done to applications, and by
	// whom, is in their history.
	Verb string `json:"verb"`
	// Kind is provider, permission or permissionset.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Before and After are the object as JSON, for registered objects.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}
