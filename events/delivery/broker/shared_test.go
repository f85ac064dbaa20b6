package broker

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"

	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/events/delivery"
)

type signer struct{}

func (signer) Sign(_ context.Context, e *cloudevents.Event) error {
	e.SetExtension("signature", "signed")
	return nil
}

func TestTheSharedSenderSigns(t *testing.T) {
	signatures := make(chan string, 1)
	ingress := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		signatures <- r.Header.Get("Ce-Signature")
	}))
	t.Cleanup(ingress.Close)
	c := newCluster(t)
	c.create(t, broker("default", ingress.URL))
	ctx, stop := context.WithCancel(c.ctx)

	var shared SharedSender
	shared.SignWith(func(context.Context) delivery.Signer { return signer{} })
	shared.With(func(ctx context.Context, _ configmap.Watcher, sender events.Sender) *controller.Impl {
		sender.Send(ctx, event(t, "a"))
		return nil
	})(ctx, c.config)
	c.configure("default")
	select {
	case got := <-signatures:
		if got != "signed" {
			t.Errorf("signature %q", got)
		}
	case <-time.After(time.Minute):
		t.Error("no event received within a minute")
	}
	stop()
	shared.WaitUntilDrained()
}
