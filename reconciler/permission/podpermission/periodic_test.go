package podpermission

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/permission/settings"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// A permission centre with its store receives the reports over HTTP. The settings are those of
// the manifest.
func TestTheExistingPodsAreReportedEveryHour(t *testing.T) {
	f := newRenamedFixture(t)
	f.authorize(formerName, "component")
	// Nothing revokes the grant of a pod whose finalizer was removed by hand, except a report.
	removed := api.ApplicationRequest{Cluster: formerName, Namespace: "default", Pod: "removed", PodUID: "removed", PodIPs: []string{"10.0.0.2"},
		ServiceAccount: "default", Set: "orders"}
	if _, err := f.client("component").Apply(t.Context(), removed); err != nil {
		t.Fatal(err)
	}
	f.await("both pods have the permission", func() bool { return len(f.double.Stats().Current) == 2 })
	f.ageApplications()

	w := f.controller(formerName, "component")
	p := f.podOfFixture()
	p.Labels = map[string]string{podmeta.Label: podmeta.LabelRequired}
	if _, err := w.kube.CoreV1().Pods(p.Namespace).Update(t.Context(), p, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	installed, _, err := settings.Parse(builder.Manifests[corev1.ConfigMap](t, "../../../config/permission/200-config-permission.yaml")[0].Data)
	if err != nil {
		t.Fatal(err)
	}
	installed.Cluster = formerName
	w.settings = func() settings.Settings { return installed }
	centre := f.client("component")
	tasks := &periodicTasks{Reconciler: w.Reconciler, lister: centre, podReportReceiver: centre}

	// The first list of pods is older than both applications, so it revokes none. The centre
	// accepts lists of the last hour, and of the next minute.
	start := time.Now().Add(-time.Hour + 30*time.Second)
	for _, after := range []time.Duration{0, 5 * time.Second, 59*time.Minute + 55*time.Second} {
		w.clock.SetTime(start.Add(after))
		tasks.runDue(t.Context())
		if !tasks.lastPodReport.Equal(start) {
			t.Errorf("%s after the first report, the last one was at %s, want %s", after, tasks.lastPodReport, start)
		}
	}
	if stats := f.double.Stats(); stats.Revoked != 0 {
		t.Fatalf("within the first hour, the provider has %+v", stats)
	}
	w.clock.SetTime(start.Add(time.Hour))
	tasks.runDue(t.Context())
	f.await("the grant of the removed pod is revoked", func() bool { return f.double.Stats().Revoked == 1 })
	if left := f.double.Stats().Current; len(left) != 1 || left[0].IP != "10.0.0.1" || f.state(formerName) != api.Granted {
		t.Errorf("the provider has %+v, want only the grant of the existing pod", left)
	}
}
