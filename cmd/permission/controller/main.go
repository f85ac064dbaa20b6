// The permission controller keeps pods until their permissions are revoked, and runs the
// self-check of config/permission. While it does not run, new pods that need permissions do not
// start, because they wait for its finalizer, and pods with the finalizer do not disappear. So
// no grant is left behind.
package main

import (
	"context"

	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/restmapper"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/signals"

	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/events/delivery/broker"
	"github.com/breakwater-dev/breakwater/internal/leaderelection"
	"github.com/breakwater-dev/breakwater/internal/ownerchain"
	"github.com/breakwater-dev/breakwater/internal/version"
	"github.com/breakwater-dev/breakwater/internal/wiring"
	"github.com/breakwater-dev/breakwater/reconciler/permission/podpermission"
	"github.com/breakwater-dev/breakwater/reconciler/selfcheck"
)

// component names the process in logs, metrics, Leases and its logging config.
const component = "permission-controller"

func main() {
	version.ExitIfAsked()
	out := &broker.SharedSender{}
	config := wiring.AcceptProtobuf(injection.ParseAndGetRESTConfigOrDie())
	leaderelection.Main(signals.NewContext(), component, config, out.With(newController), selfcheck.NewController(guards))
	out.WaitUntilDrained()
}

func newController(ctx context.Context, cmw configmap.Watcher, sender events.Sender) *controller.Impl {
	objects, err := metadata.NewForConfig(injection.GetConfig(ctx))
	if err != nil {
		logging.FromContext(ctx).Panicw("create a client of metadata", "error", err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kubeclient.Get(ctx).Discovery()))
	return podpermission.NewController(ctx, cmw, sender, ownerchain.New(objects, mapper))
}
