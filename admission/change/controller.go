// Package change builds the controller of the change webhooks from informers,
// settings, handlers and the reconciler of the webhook configurations. version answers
// for mdeployment.kb.io, suspend for vdeployment.kb.io, releasecheck for
// vrelease.kb.io, opsconfig and workloadkinds for the webhooks that check the
// configuration.
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

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/change/opsconfig"
	"github.com/breakwater-dev/breakwater/admission/change/releaseindex"
	"github.com/breakwater-dev/breakwater/admission/change/suspend"
	"github.com/breakwater-dev/breakwater/admission/change/version"
	"github.com/breakwater-dev/breakwater/admission/change/workloadkinds"
	"github.com/breakwater-dev/breakwater/admission/server"
	changeclient "github.com/breakwater-dev/breakwater/client/injection/client"
	changeworkloadinformer "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/changeworkload"
	opsconfiginformer "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/opsconfiginfo"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/wiring"
)

// Names of objects of the manifests in SystemNamespace.
const (
	// ServiceName is the Service of the webhook.
	ServiceName = "webhook"
	// SecretName is the Secret with the certificate.
	SecretName = "webhook-certs"
)

// Options describe the process of the webhooks.
func Options() server.Options {
	return server.Options{Component: "webhook", Service: ServiceName, Secret: SecretName, Webhooks: NewController}
}

// NewController returns the constructor of the controller. The context must have
// webhook.Options. The constructor panics on permanent errors.
func NewController(process *server.Process) injection.ControllerConstructor {
	return func(ctx context.Context, cmw configmap.Watcher) *controller.Impl {
		must := wiring.NewMust(ctx, "set up the webhooks of changes")
		configs := newWebhookConfigReconciler(ctx)
		kinds := workloadkinds.NewStore(cmw, metrics.Meter(), configs.recordedKinds, configs.enqueueGenerated)
		configs.Kinds = kinds.Get
		mux, err := newMux(ctx, process.NewSender(ctx, cmw), kinds.Get, configs.Recorder)
		must(err)
		impl, err := server.NewController(ctx, process, configs.Reconciler, mux)
		must(err)
		must(configs.watch(ctx, impl))
		return impl
	}
}

func newMux(ctx context.Context, sender events.Sender, kinds func() workloadkinds.State, recorder record.EventRecorder) (*admission.Mux, error) {
	store, err := settings.NewStore(opsconfiginformer.Get(ctx), nil)
	if err != nil {
		return nil, err
	}
	releases := changeworkloadinformer.Get(ctx)
	if err := releases.Informer().SetTransform(releaseindex.Trim); err != nil {
		return nil, fmt.Errorf("set the transform of the ChangeWorkload informer: %w", err)
	}
	history := &releaseindex.Index{Lister: releases.Lister(), Client: changeclient.Get(ctx).AppV1alpha1(), Revisions: kubeclient.Get(ctx).AppsV1()}
	kube := kubeclient.Get(ctx)
	check := newReleaseCheck(ctx, kinds, store.Get, history, recorder, sender)
	return admission.NewMux(metrics.Meter(), handlers{
		kinds:    kinds,
		check:    check,
		settings: opsconfig.Validator{Lister: opsconfiginformer.Get(ctx).Lister()},
		mutating: version.Handler{
			Settings: store.Get, History: history, Clock: clock.RealClock{}, Namespaces: kube.CoreV1(),
			Creations: &version.CreationCheck{Namespaces: kube.CoreV1(), Mutating: mutatinginformer.Get(ctx).Lister()},
		},
		validating: suspend.Handler{
			Settings: store.Get, History: history, Authorizer: suspend.AccessReviewer{Client: kube.AuthorizationV1()},
			Recorder: recorder, Sender: sender,
		},
	}.find), nil
}
