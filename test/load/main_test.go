//go:build controlplane

package load

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	admission "github.com/breakwater-dev/breakwater/admission/change"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned"
	senders "github.com/breakwater-dev/breakwater/events/delivery/broker"
	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/functions/callback"
	"github.com/breakwater-dev/breakwater/functions/report"
	"github.com/breakwater-dev/breakwater/functions/submit"
	"github.com/breakwater-dev/breakwater/functions/verdict"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/process"
	"github.com/breakwater-dev/breakwater/reconciler/change"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
	"github.com/breakwater-dev/breakwater/test/controlplane"
)

const (
	platform = "breakwater"
	token    = "secret"
)

var (
	// plane is the control plane.
	plane *controlplane.ControlPlane
	// server is the double of the server; without a script each check passes at once.
	server *double.Double
	// eventBroker is the Broker.
	eventBroker *broker
	// submitServer has the client of function submit.
	submitServer *functions.ClientSource
)

func TestMain(m *testing.M) {
	os.Exit(controlplane.Main(m, func(ctx context.Context) (*controlplane.ControlPlane, error) {
		p, err := controlplane.StartPart(ctx, controlplane.Part{
			Manifests: "config/core", Configs: "config",
			Webhooks: admission.Options(), Configuration: admission.Configuration,
			Component: change.Component, Controllers: change.Controllers(&senders.SharedSender{}),
			// A test pauses the API server until the Leases have expired.
			Election: map[string]string{"lease-duration": "10s", "renew-deadline": "8s", "retry-period": "2s"},
		})
		if err != nil {
			return nil, err
		}
		plane = p
		if err := errors.Join(enlargeNodes(ctx), startFunctions(ctx)); err != nil {
			return nil, errors.Join(err, p.Stop())
		}
		return p, nil
	}))
}

// startFunctions starts the functions, each with the clients of its own process, and the
// Broker and the server between them.
func startFunctions(ctx context.Context) error {
	clients := map[string]process.Clients{}
	for _, name := range []string{"submit", "verdict", "report", "callback"} {
		c, err := process.NewClients(os.Getenv("KUBECONFIG"), name)
		if err != nil {
			return err
		}
		clients[name] = c
	}
	now, meter := clock.RealClock{}, metrics.Meter()
	receiver := func(name string, f functions.Function) http.Handler {
		return functions.NewReceiver(name, 50, f, now, meter)
	}
	recorder, source := verdict.NewRecorder(clients["verdict"].Change, now, meter), functions.NewReplicaClientSource(clients["verdict"].Kube, 1)
	finisher := submit.NewFinisher(clients["verdict"].Change, source, now, meter)
	recorder.SetFollower(finisher)
	submitServer = functions.NewReplicaClientSource(clients["submit"].Kube, 1)
	eventBroker = &broker{
		submit: receiver("submit", submit.New(clients["submit"].Change, submitServer,
			verdict.NewRecorder(clients["submit"].Change, now, meter), eventsigning.NewEventStore(clients["submit"].Kube.CoreV1(), now), now, meter)),
		verdict: receiver("verdict", verdict.New(recorder, source,
			eventsigning.NewVerdictStore(clients["verdict"].Kube.CoreV1(), now), eventsigning.NewJudgeKeys(clients["verdict"].Kube.CoreV1(), now))),
		report: receiver("report", report.New(clients["report"].Change, functions.NewReplicaClientSource(clients["report"].Kube, 1),
			eventsigning.NewEventStore(clients["report"].Kube.CoreV1(), now), now, meter)),
	}
	sender, follow, err := senders.NewStandaloneSender(ctx, clients["callback"].Config)
	if err != nil {
		return err
	}
	config := rest.CopyConfig(clients["callback"].Config)
	config.Timeout = 0 // it would end each watch
	watching, err := versioned.NewForConfig(config)
	if err != nil {
		return err
	}
	batches, err := callback.NewBatches(watching)
	if err != nil {
		return err
	}
	for _, run := range []func(context.Context) error{follow, sender.Run, finisher.Run, batches.Run} {
		go func() { _ = run(ctx) }()
	}
	callbacks := httptest.NewUnstartedServer(callback.New(callback.Options{
		Change: clients["callback"].Change, Batches: batches, Server: functions.NewReplicaClientSource(clients["callback"].Kube, 1), Broker: sender,
		Signer: eventsigning.NewVerdictStore(clients["callback"].Kube.CoreV1(), now), Clock: now, Meter: meter,
	}))
	callbacks.Config.BaseContext = func(net.Listener) context.Context { return quiet(context.Background()) }
	callbacks.Start()
	server = double.NewDouble(double.Options{
		CallbackURL: callbacks.URL + "/openapi/altershield/callback", Tokens: map[string]string{platform: token},
	})
	return configure(ctx, clients["submit"].Kube, httptest.NewServer(eventBroker).URL, httptest.NewServer(server.Handler()).URL)
}
