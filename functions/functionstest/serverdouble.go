package functionstest

import (
	"net/http/httptest"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/functions"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
)

// Token signs requests to the server and its callbacks.
const Token = "secret"

// ServerDouble is a double of the AlterShield server, with the client of the functions.
type ServerDouble struct {
	*double.Double
	// Clients returns clients of the double.
	Clients *functions.ClientSource
	Clock   *clocktesting.FakeClock
}

// NewServerDouble starts a double that sends callbacks to callbackURL, and configures the
// cluster for it. Signatures are enforced. The clock stays at Now.
func NewServerDouble(t *testing.T, c *Cluster, callbackURL string) *ServerDouble {
	clock := clocktesting.NewFakeClock(Now())
	d := double.NewDouble(double.Options{
		CallbackURL: callbackURL, Tokens: map[string]string{"breakwater": Token}, Clock: clock,
	})
	http := httptest.NewServer(d.Handler())
	t.Cleanup(func() {
		http.CloseClientConnections()
		http.Close()
		d.Close()
	})
	c.Configure(http.URL, Token)
	return &ServerDouble{Double: d, Clients: NewClients(c, clock), Clock: clock}
}

// NewClients returns a source of clients for the server that the cluster configures.
// The clients wait 1 ms between attempts.
func NewClients(c *Cluster, clock *clocktesting.FakeClock) *functions.ClientSource {
	return functions.NewClientSource(c.Kube, altershield.WithClock(clock), altershield.WithPause(time.Millisecond))
}

// Script sets the script of the double.
func (d *ServerDouble) Script(t *testing.T, s double.Script) {
	t.Helper()
	if err := d.SetScript(s); err != nil {
		t.Fatal(err)
	}
}

// Calls returns the actions of all calls, in order.
func (d *ServerDouble) Calls() []string {
	var out []string
	for _, call := range d.Log().Calls {
		out = append(out, call.Action)
	}
	return out
}

// NewNode opens the order and starts its first batch at the double, and returns the
// order node. The check has ended when it returns.
func (d *ServerDouble) NewNode(t *testing.T) string {
	t.Helper()
	client, _, err := d.Clients.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.OpenOrder(t.Context(), altershield.OpenOrder{OrderID: OrderID, Apps: []string{"sleep"}}); err != nil {
		t.Fatal(err)
	}
	answer, err := client.StartBatch(t.Context(), altershield.StartBatch{OrderID: OrderID, Info: altershield.BatchInfo{Pods: []string{"a"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	return answer.NodeID
}
