// Package change puts the webhooks together: informers, settings, handlers and
// bookkeeping become the one controller that knative's sharedmain runs.
package change

import (
	"context"
	"fmt"

	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	mutatinginformer "knative.dev/pkg/client/injection/kube/informers/admissionregistration/v1/mutatingwebhookconfiguration"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/change/releaseindex"
	"github.com/breakwater-dev/breakwater/admission/change/suspend"
	"github.com/breakwater-dev/breakwater/admission/change/version"
	"github.com/breakwater-dev/breakwater/admission/change/workloadkinds"
	"github.com/breakwater-dev/breakwater/admission/server"
	changeclient "github.com/breakwater-dev/breakwater/client/injection/client"
	changeworkloadinformer "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/changeworkload"
	opsconfiginformer "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/opsconfiginfo"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/settings"
)

// The names of what the manifests make for the webhook, in SystemNamespace.
const (
	// ServiceName is the Service that the configurations point to.
	ServiceName = "webhook"
	// SecretName is the Secret with the certificate.
	SecretName = "webhook-certs"
)

// NewController returns the constructor for sharedmain. The context must have
// webhook.Options. It panics on what no retry can mend.
func NewController(ready *server.Readiness) injection.ControllerConstructor {
	return func(ctx context.Context, cmw configmap.Watcher) *controller.Impl {
		books := newBookkeeper(ctx)
		known := workloadkinds.NewStore(cmw, metrics.Meter(), books.remembered, books.wake)
		books.Kinds = known.Get
		mux, err := newMux(ctx, cmw, known.Get, books.Recorder)
		if err != nil {
			logging.FromContext(ctx).Panicw("wire the webhooks", "error", err)
		}
		impl := server.NewController(ctx, ready, books.Reconciler, mux)
		if err := books.follow(ctx, impl); err != nil {
			logging.FromContext(ctx).Panicw("follow the certificate", "error", err)
		}
		return impl
	}
}

func newMux(ctx context.Context, cmw configmap.Watcher, known func() workloadkinds.State, recorder record.EventRecorder) (*admission.Mux, error) {
	store, err := settings.NewStore(opsconfiginformer.Get(ctx), nil)
	if err != nil {
		return nil, err
	}
	releases := changeworkloadinformer.Get(ctx)
	if err := releases.Informer().SetTransform(releaseindex.Trim); err != nil {
		return nil, fmt.Errorf("trim the cache: %w", err)
	}
	past := &releaseindex.Index{Lister: releases.Lister(), Client: changeclient.Get(ctx).AppV1alpha1(), Revisions: kubeclient.Get(ctx).AppsV1()}
	sender := server.NewSender(ctx, cmw)
	kube := kubeclient.Get(ctx)
	check := newReleaseCheck(ctx, known, store.Get, past, recorder, sender)
	return admission.NewMux(metrics.Meter(), handlers{
		kinds: known,
		check: check,
		stamper: version.Handler{
			Settings: store.Get, History: past, Clock: clock.RealClock{},
			Creations: &version.CreationCheck{Namespaces: kube.CoreV1(), Mutating: mutatinginformer.Get(ctx).Lister()},
		},
		gate: suspend.Handler{
			Settings: store.Get, History: past, Authorizer: suspend.AccessReviewer{Client: kube.AuthorizationV1()},
			Recorder: recorder, Sender: sender,
		},
	}.find), nil
}
