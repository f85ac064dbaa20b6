package judge

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/breakwater-dev/breakwater/judge/prometheus"
	"github.com/breakwater-dev/breakwater/test/pipenetwork"
)

// Without pings, an HTTP/2 connection outlives the timeouts of its requests.
func TestAQueryLeavesAConnectionThatWasLostSilently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network pipenetwork.Network
		ca := network.ServeTLS(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"status":"success","data":{"resultType":"matrix","result":[]}}`))
		}))
		transport, err := newTransport(config{concurrent: 1, ca: []byte(ca)})
		if err != nil {
			t.Fatal(err)
		}
		defer transport.CloseIdleConnections()
		transport.DialContext = network.Dial("192.0.2.1")
		client, err := prometheus.New("https://127.0.0.1", time.Second, transport)
		if err != nil {
			t.Fatal(err)
		}
		network.CheckLoss(t, func() error {
			_, err := client.Range(t.Context(), "up", time.Now().Add(-time.Minute), time.Now(), time.Second)
			return err
		})
	})
}
