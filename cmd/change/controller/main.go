// The controller runs the reconcilers of changes. Each of them is built by a NewController
// that takes the context, the watcher of ConfigMaps and, if it sends events,
// the Sender; each has a settings.Store of its own, which costs one handler on
// a shared informer. The Sender is one for the process: it has one queue and
// one set of connections.
package main

import (
	"k8s.io/apimachinery/pkg/runtime"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/signals"

	"github.com/breakwater-dev/breakwater/events/delivery/broker"
	"github.com/breakwater-dev/breakwater/internal/leaderelection"
	"github.com/breakwater-dev/breakwater/reconciler/change/changepod"
	"github.com/breakwater-dev/breakwater/reconciler/change/changeworkload"
	"github.com/breakwater-dev/breakwater/reconciler/change/opsconfiginfo"
	"github.com/breakwater-dev/breakwater/reconciler/change/pod"
	"github.com/breakwater-dev/breakwater/reconciler/change/rollback"
	"github.com/breakwater-dev/breakwater/reconciler/change/savedtemplates"
	"github.com/breakwater-dev/breakwater/reconciler/change/workload"
	"github.com/breakwater-dev/breakwater/reconciler/webhookhealth"
)

// component names the process in logs, metrics, Leases and config-logging.
const component = "controller"

// accepted are the content types that the API server may answer with. Every pod of a cluster is
// watched, and protobuf is cheaper to read; objects of CRDs have JSON only.
// Requests stay JSON.
const accepted = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON

func main() {
	out := &broker.SharedSender{}
	config := injection.ParseAndGetRESTConfigOrDie()
	config.AcceptContentTypes = accepted
	leaderelection.Main(signals.NewContext(), component, config, controllers(out)...)
	out.Drain()
}

// controllers are the constructors of all that runs here.
func controllers(out *broker.SharedSender) []injection.ControllerConstructor {
	return []injection.ControllerConstructor{
		workload.NewController,
		opsconfiginfo.NewController,
		savedtemplates.NewController,
		webhookhealth.NewController(guards),
		out.With(pod.NewController),
		out.With(changeworkload.NewController),
		out.With(changepod.NewController),
		out.With(rollback.NewController),
	}
}
