package workload

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// The labels that name an application; the first one that is set is used.
const (
	recommendedNameLabel = "app.kubernetes.io/name"
	appLabel             = "app"
)

// build returns the ChangeWorkload of a release. The workload owns it, so that
// it is deleted with the workload.
func build(w *workload.Workload, release v1alpha1.Release, cluster string, s settings.Settings, now time.Time) *v1alpha1.ChangeWorkload {
	name := v1alpha1.ChangeWorkloadName(w.Name, release.Version)
	ref := v1alpha1.WorkloadRef{APIVersion: w.Kind.GroupVersion().String(), Kind: w.Kind.Kind, Name: w.Name, UID: w.UID}
	orderID := v1alpha1.OrderID(cluster, w.Namespace, ref, release.Version, release.Attempt)
	return &v1alpha1.ChangeWorkload{
		ObjectMeta: metav1.ObjectMeta{
			Name:      name,
			Namespace: w.Namespace,
			Labels: map[string]string{
				v1alpha1.VersionKey:          release.Version,
				v1alpha1.DeploymentNameLabel: v1alpha1.LabelValue(w.Name),
				v1alpha1.OrderLabel:          v1alpha1.OrderHash(orderID),
			},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w, w.Kind.GroupVersionKind)},
		},
		Spec: v1alpha1.ChangeWorkloadSpec{
			ChangeWorkloadID:  name,
			ServiceName:       w.Name,
			Reversion:         release.Version,
			CountThreshold:    s.BatchSize(w.Replicas),
			WaitTimeThreshold: int32(s.WaitThreshold / time.Second),
			CreateTime:        v1alpha1.FormatTime(now),
			CreateTimeUnix:    now.Unix(),
			AppName:           cmp.Or(w.Labels[recommendedNameLabel], w.Labels[appLabel], w.Name),
			WorkloadRef:       ref,
			Attempt:           release.Attempt,
			OrderID:           orderID,
		},
	}
}
