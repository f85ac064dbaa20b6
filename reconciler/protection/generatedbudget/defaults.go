package generatedbudget

import (
	"sync/atomic"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"knative.dev/pkg/configmap"

	changev1alpha1 "github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/generatedbudget"
	"github.com/breakwater-dev/breakwater/internal/optionalconfig"
)

// ReasonConfigInvalid says that the ConfigMap of the default does not read.
const ReasonConfigInvalid = "ConfigInvalid"

// defaults is what counts where nobody says a value. One that does not read does
// not take the place of one that did.
type defaults struct {
	limits atomic.Pointer[generatedbudget.Limits]
	// changed is told that all workloads are to be looked at.
	changed  func()
	recorder record.EventRecorder
	logger   *zap.SugaredLogger
}

func (d *defaults) get() generatedbudget.Limits {
	if now := d.limits.Load(); now != nil {
		return *now
	}
	limits, _ := generatedbudget.ParseDefault(nil) // nothing always reads
	return limits
}

// follow follows the ConfigMap, which need not exist.
func (d *defaults) follow(cmw configmap.Watcher) {
	optionalconfig.Follow(cmw, generatedbudget.ConfigName, d.observe)
}

func (d *defaults) observe(cm *corev1.ConfigMap) {
	limits, err := generatedbudget.ParseDefault(cm.Data)
	if err != nil {
		d.logger.Errorw("the default of generated budgets does not read, so the one before it goes on to count", "error", err)
		d.recorder.Event(&corev1.ObjectReference{
			APIVersion: "v1", Kind: "ConfigMap", Namespace: changev1alpha1.SystemNamespace, Name: generatedbudget.ConfigName, UID: cm.UID,
		}, corev1.EventTypeWarning, ReasonConfigInvalid, "the default before this one goes on to count: "+err.Error())
		return
	}
	d.limits.Store(&limits)
	d.changed()
}
