package callback_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/breakwater-dev/breakwater/events"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
)

// If each verdict waited for the Broker, no time would be left for the last ones.
func TestEachVerdictOfABatchIsStoredInTheInboxIfTheBrokerDoesNotAnswer(t *testing.T) {
	const verdicts = 20
	objects := []runtime.Object{ft.NewRelease()}
	var batch []string
	for n := 1; n <= verdicts; n++ {
		node := fmt.Sprintf("n%d", n)
		objects = append(objects, ft.NewBatch(n, []string{node}, ft.Started(node, 0)))
		batch = append(batch, fmt.Sprintf(`{"specversion":"1.0","id":%q,"source":"/s","type":%q,"data":{"bizExecOrderId":%q,"nodeId":%q,"stage":"POST","verdict":"fail"}}`,
			node, events.TypeChangePodVerdict, ft.OrderID, node))
	}
	h := newConfiguredFixture(t, objects...)
	h.options.Broker = deliverer(func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	h.setStoreTimeout(t, 2*time.Second)
	expect(t, h.post("["+strings.Join(batch, ",")+"]", "Content-Type", "application/cloudevents-batch+json"), http.StatusOK)
	if n := len(h.inbox()); n != verdicts {
		t.Errorf("%d verdicts in the inbox, want %d", n, verdicts)
	}
}
