package workload

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/workloadinformer/workloadinformertest"
)

const version = "0123456789abcdef0123456789abcdef"

func TestBuild(t *testing.T) {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sleep", UID: "d"},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(30))},
	}
	s := settings.Default()
	s.BatchPercent = 10
	at := time.Date(2026, 2, 3, 4, 5, 6, 0, time.FixedZone("Shanghai", 8*60*60))
	orderID := "c1/default/Deployment/sleep/d/" + version + "/3"
	want := &v1alpha1.ChangeWorkload{
		ObjectMeta: metav1.ObjectMeta{
			Name: "sleep--x--" + version, Namespace: "default",
			Labels: map[string]string{
				"admission-webhook-altershield.antgroup.com/version": version,
				"app.kubernetes.io/deployment-name":                  "sleep",
				"app.ops.cloud.alipay.com/order":                     v1alpha1.OrderHash(orderID),
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "Deployment", Name: "sleep", UID: "d",
				Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Spec: v1alpha1.ChangeWorkloadSpec{
			ChangeWorkloadID: "sleep--x--" + version, ServiceName: "sleep", Reversion: version,
			CountThreshold: 3, WaitTimeThreshold: 60,
			CreateTime: "2026-02-02 20:05:06", CreateTimeUnix: at.Unix(), AppName: "sleep",
			WorkloadRef: v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "sleep", UID: "d"},
			Attempt:     3, OrderID: orderID,
		},
	}
	got := build(workloadinformertest.Workload(t, workload.Deployment, d), v1alpha1.Release{Version: version, Attempt: 3}, "c1", s, at)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("(-want +got):", diff)
	}
}

func TestBuildNamesTheApplication(t *testing.T) {
	tests := map[string]struct {
		labels map[string]string
		want   string
	}{
		"the recommended label counts first": {map[string]string{"app.kubernetes.io/name": "a", "app": "b"}, "a"},
		"then the label app":                 {map[string]string{"app": "b"}, "b"},
		"then the Deployment's name":         {nil, "sleep"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "sleep", Labels: tc.labels}}
			got := build(workloadinformertest.Workload(t, workload.Deployment, d), v1alpha1.Release{Version: version}, "c", settings.Default(), time.Time{}).Spec.AppName
			if got != tc.want {
				t.Errorf("appName = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestBuildShortensLongNames(t *testing.T) {
	long := strings.Repeat("a.", 126) + "z" // 253 characters
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: long}}
	one := build(workloadinformertest.Workload(t, workload.Deployment, d), v1alpha1.Release{Version: version, Attempt: 1}, "c", settings.Default(), time.Time{})
	if errs := validation.IsDNS1123Subdomain(one.Name); len(errs) > 0 {
		t.Errorf("name %q: %v", one.Name, errs)
	}
	for key, value := range one.Labels {
		if errs := validation.IsValidLabelValue(value); len(errs) > 0 {
			t.Errorf("label %s=%q: %v", key, value, errs)
		}
	}
	if len(one.Spec.OrderID) > 128 {
		t.Errorf("orderId has %d bytes, the server takes 128", len(one.Spec.OrderID))
	}
	if one.Spec.ServiceName != long {
		t.Error("serviceName must be the whole name")
	}
	d.Name = long[:252] + "y"
	if other := build(workloadinformertest.Workload(t, workload.Deployment, d), v1alpha1.Release{Version: version, Attempt: 1}, "c", settings.Default(), time.Time{}); other.Name == one.Name {
		t.Error("two Deployments share a ChangeWorkload")
	}
}
