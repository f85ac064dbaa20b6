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

// ReasonConfigInvalid means that the ConfigMap with the default is invalid.
const ReasonConfigInvalid = "ConfigInvalid"

// defaults has the default limits from the ConfigMap. An invalid ConfigMap does not
// replace the last valid one that this process read; if it read none, 25% applies.
type defaults struct {
	limits atomic.Pointer[generatedbudget.Limits]
	// changed enqueues all workloads.
	changed  func()
	recorder record.EventRecorder
	logger   *zap.SugaredLogger
}

func (d *defaults) get() generatedbudget.Limits {
	if loaded := d.limits.Load(); loaded != nil {
		return *loaded
	}
	return withoutConfig()
}

// withoutConfig is the default without the ConfigMap.
func withoutConfig() generatedbudget.Limits {
	limits, _ := generatedbudget.ParseDefault(nil) // never fails without data
	return limits
}

// effect says which default applies while the ConfigMap is invalid.
func (d *defaults) effect() string {
	current, afterRestart := text(d.get()), text(withoutConfig())
	if current == afterRestart {
		return "the default is " + current
	}
	return "the default is " + current + " until the controller restarts, and then " + afterRestart
}

func text(l generatedbudget.Limits) string {
	if l.MinAvailable != nil {
		return "minAvailable " + l.MinAvailable.String()
	}
	return "maxUnavailable " + l.MaxUnavailable.String()
}

// follow watches the ConfigMap, which need not exist.
func (d *defaults) follow(cmw configmap.Watcher) {
	optionalconfig.Watch(cmw, generatedbudget.ConfigName, d.observe)
}

func (d *defaults) observe(cm *corev1.ConfigMap) {
	limits, err := generatedbudget.ParseDefault(cm.Data)
	if err != nil {
		d.logger.Errorw("the ConfigMap of generated budgets is invalid", "effect", d.effect(), "error", err)
		d.recorder.Event(&corev1.ObjectReference{
			APIVersion: "v1", Kind: "ConfigMap", Namespace: changev1alpha1.SystemNamespace, Name: generatedbudget.ConfigName, UID: cm.UID,
		}, corev1.EventTypeWarning, ReasonConfigInvalid, d.effect()+": "+err.Error())
		return
	}
	d.limits.Store(&limits)
	d.changed()
}
