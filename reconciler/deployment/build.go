package deployment

import (
	"cmp"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/apis/change/settings"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// Labels that name an application, the first that is there counts.
const (
	recommendedNameLabel = "app.kubernetes.io/name"
	appLabel             = "app"
)

// build returns the ChangeWorkload of a release. The Deployment owns it, so
// that it goes when the Deployment goes.
func build(d *appsv1.Deployment, release v1alpha1.Release, cluster string, s settings.Settings, now time.Time) *v1alpha1.ChangeWorkload {
	gvk := appsv1.SchemeGroupVersion.WithKind(kind)
	name := v1alpha1.ChangeWorkloadName(d.Name, release.Version)
	ref := v1alpha1.WorkloadRef{APIVersion: gvk.GroupVersion().String(), Kind: kind, Name: d.Name, UID: d.UID}
	orderID := v1alpha1.OrderID(cluster, d.Namespace, ref, release.Version, release.Attempt)
	return &v1alpha1.ChangeWorkload{
		ObjectMeta: metav1.ObjectMeta{
			Name:      name,
			Namespace: d.Namespace,
			Labels: map[string]string{
				v1alpha1.VersionKey:          release.Version,
				v1alpha1.DeploymentNameLabel: v1alpha1.LabelValue(d.Name),
				v1alpha1.OrderLabel:          v1alpha1.OrderHash(orderID),
			},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, gvk)},
		},
		Spec: v1alpha1.ChangeWorkloadSpec{
			ChangeWorkloadID:  name,
			ServiceName:       d.Name,
			Reversion:         release.Version,
			CountThreshold:    s.BatchSize(ptr.Deref(d.Spec.Replicas, 1)),
			WaitTimeThreshold: int32(s.WaitThreshold / time.Second),
			CreateTime:        v1alpha1.FormatTime(now),
			CreateTimeUnix:    now.Unix(),
			AppName:           cmp.Or(d.Labels[recommendedNameLabel], d.Labels[appLabel], d.Name),
			WorkloadRef:       ref,
			Attempt:           release.Attempt,
			OrderID:           orderID,
		},
	}
}
