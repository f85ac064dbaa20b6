package opsconfiginfo

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/optionalconfig"
)

// installedName is the ConfigMap with the default objects that have been created:
// a key for each, with the time. A manifest creates it.
const installedName = "installed-defaults"

// installed caches which default objects have been created.
type installed struct {
	kube kubernetes.Interface
	data atomic.Pointer[map[string]string]
}

// watchInstalled returns the cache, which follows the ConfigMap.
func watchInstalled(cmw configmap.Watcher, kube kubernetes.Interface) *installed {
	i := &installed{kube: kube}
	i.observe(&corev1.ConfigMap{})
	optionalconfig.Watch(cmw, installedName, i.observe)
	return i
}

func (i *installed) observe(cm *corev1.ConfigMap) {
	data := cm.Data
	i.data.Store(&data)
}

func (i *installed) has(name string) bool { return (*i.data.Load())[name] != "" }

// add records that the named object was created or found. If the ConfigMap was
// deleted nothing can be recorded, and a default object that is deleted is
// created again at the next start.
func (i *installed) add(ctx context.Context, name string, at time.Time) error {
	patch, err := json.Marshal(map[string]any{"data": map[string]string{name: at.UTC().Format(time.RFC3339)}})
	if err != nil {
		return fmt.Errorf("record OpsConfigInfo %s: %w", name, err)
	}
	_, err = i.kube.CoreV1().ConfigMaps(v1alpha1.SystemNamespace).Patch(ctx, installedName, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: fieldManager})
	if apierrs.IsNotFound(err) {
		logging.FromContext(ctx).Warnw("the ConfigMap of the default objects does not exist: apply the manifests again", "configmap", installedName)
		return nil
	} else if err != nil {
		return fmt.Errorf("record OpsConfigInfo %s: %w", name, err)
	}
	return nil
}
