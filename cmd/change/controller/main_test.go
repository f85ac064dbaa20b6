package main

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	_ "knative.dev/pkg/client/injection/apiextensions/client/fake"
	_ "knative.dev/pkg/client/injection/ducks/duck/v1/addressable/fake"
	fakekubeclient "knative.dev/pkg/client/injection/kube/client/fake"
	_ "knative.dev/pkg/client/injection/kube/informers/apps/v1/controllerrevision/fake"
	_ "knative.dev/pkg/client/injection/kube/informers/apps/v1/replicaset/fake"
	_ "knative.dev/pkg/client/injection/kube/informers/core/v1/namespace/fake"
	_ "knative.dev/pkg/client/injection/kube/informers/core/v1/node/fake"
	_ "knative.dev/pkg/client/injection/kube/informers/core/v1/pod/fake"
	"knative.dev/pkg/configmap/informer"
	_ "knative.dev/pkg/injection/clients/dynamicclient/fake"
	"knative.dev/pkg/reconciler"
	rtesting "knative.dev/pkg/reconciler/testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	_ "github.com/breakwater-dev/breakwater/client/injection/client/fake"
	_ "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/changepod/fake"
	_ "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/changeworkload/fake"
	_ "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/opsconfiginfo/fake"
	_ "github.com/breakwater-dev/breakwater/client/injection/informers/judge/v1alpha1/metriccheck/fake"
	"github.com/breakwater-dev/breakwater/events/delivery/broker"
	"github.com/breakwater-dev/breakwater/internal/releasetrace/traceexport"
)

func TestAllControllersAreLeaderAwareAndRunInOneProcess(t *testing.T) {
	ctx, cancel, _ := rtesting.SetupFakeContextWithCancel(t)
	out := &broker.SharedSender{}
	cmw := informer.NewInformedWatcher(fakekubeclient.Get(ctx), v1alpha1.SystemNamespace)
	var queues []string
	for _, build := range controllers(out, traceexport.New("controller")) {
		impl := build(ctx, cmw)
		if _, ok := impl.Reconciler.(reconciler.LeaderAware); !ok {
			t.Errorf("%s is not leader-aware", impl.Name)
		}
		queues = append(queues, impl.Name)
	}
	slices.Sort(queues)
	const change = "github.com.breakwater-dev.breakwater.reconciler.change."
	if diff := cmp.Diff([]string{
		change + "changepod.Reconciler", change + "changeworkload.Reconciler", change + "opsconfiginfo.Reconciler", change + "pod.Reconciler",
		change + "rollback.Reconciler", change + "savedtemplates.Reconciler", "replay", "selfcheck", "signingkeys", "workload",
	}, queues); diff != "" {
		t.Errorf("queues (-want +got):\n%s", diff)
	}
	// No controller needs a ConfigMap to start.
	if err := cmw.Start(ctx.Done()); err != nil {
		t.Error(err)
	}
	cancel()
	out.WaitUntilDrained()
}
