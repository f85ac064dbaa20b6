package functionstest

import (
	"net/http/httptest"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/functions"
	double "github.com/breakwater-dev/breakwater/test/altershield"
)

// Token signs between the judge and us.
const Token = "secret"

// Judge is a double of the server, and how functions reach it.
type Judge struct {
	*double.Double
	// Server is for the functions.
	Server *functions.ClientSource
	Clock  *clocktesting.FakeClock
}

// NewJudge starts a double, which calls back to callbackURL, and configures the
// cluster for it. Its signatures are enforced; time stands still at Now.
func NewJudge(t *testing.T, c *Cluster, callbackURL string) *Judge {
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
	return &Judge{Double: d, Server: NewServer(c, clock), Clock: clock}
}

// NewServer returns what functions reach the cluster's server with; it does not
// wait long between its attempts.
func NewServer(c *Cluster, clock *clocktesting.FakeClock) *functions.ClientSource {
	return functions.NewClientSource(c.Kube, altershield.WithClock(clock), altershield.WithPause(time.Millisecond))
}

// Script sets how the double behaves.
func (j *Judge) Script(t *testing.T, s double.Script) {
	t.Helper()
	if err := j.SetScript(s); err != nil {
		t.Fatal(err)
	}
}

// Calls are the actions that were called, in order.
func (j *Judge) Calls() []string {
	var out []string
	for _, call := range j.Log().Calls {
		out = append(out, call.Action)
	}
	return out
}

// NewNode opens the order and starts its first batch at the double, as an
// earlier wake-up did, and returns the node. The check is over on return.
func (j *Judge) NewNode(t *testing.T) string {
	t.Helper()
	client, _, err := j.Server.Client(t.Context())
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
	if err := j.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	return answer.NodeID
}
