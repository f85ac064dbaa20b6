//go:build controlplane

package change

import (
	"os/exec"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
	"github.com/breakwater-dev/breakwater/test/docs/commands"
	kubeconfig "github.com/breakwater-dev/breakwater/test/e2e/kubectl"
)

func TestTheCommandsOfPagesSucceed(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	all, err := commands.RunOn(commands.Change, root)
	if err != nil || len(all) == 0 {
		t.Fatalf("%d commands, %v", len(all), err)
	}
	w := newFixture(t).create(t, workload.Deployment, builder.Deployment("web", 2, builder.Simulated))
	w.awaitSaved(t, 1)
	w.mustPatch(t, releaseOf("v2"))
	release := w.awaitPhase(t, v1alpha1.ReleaseSuccess, 2)
	w.create(t, workload.StatefulSet, builder.StatefulSet("set", 1, 1))
	w.create(t, workload.DaemonSet, builder.DaemonSet("agent", w.simulatedNodes(t, 1), 1))
	w.useServing(t)
	w.create(t, workload.KnativeService, object(t, knativeService))
	pods, err := w.Kube.CoreV1().Pods(w.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil || len(pods.Items) == 0 {
		t.Fatalf("%d pods, %v", len(pods.Items), err)
	}
	live, err := w.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	batch := w.awaitBatch(t, 2).Name
	names := []string{
		"changeworkload <name>", "changeworkload " + release.Name, "changeworkload/<name>", "changeworkload/" + release.Name,
		"changeworkload NAME", "changeworkload " + release.Name, "changepod <name>", "changepod " + batch, "changepod NAME", "changepod " + batch,
		"-n NAMESPACE", "", "-n NS", "", "-n canary", "", "<namespace>", w.namespace, "<ns>", w.namespace, "namespace default", "namespace " + w.namespace,
		"-n shop", "", "namespace shop", "namespace " + w.namespace, "<kind>", "deployment", "<group>", "judges", "<pod>", pods.Items[0].Name,
		"<version>", live.Labels[v1alpha1.VersionKey], "<UID of the workload>", string(live.UID),
		"KIND/NAME", "deployment/web", "deployment sleep", "deployment web", "deployment/sleep", "deployment/web", "pod web-0", "pod " + pods.Items[0].Name, "statefulset web", "statefulset set",
		"daemonset web", "daemonset agent", "config/samples/", root + "/config/samples/",
	}
	k, err := kubeconfig.In(w.namespace, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	plugin := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", folder, "./cmd/kubectl-breakwater")
	plugin.Dir = root
	if out, err := plugin.CombinedOutput(); err != nil {
		t.Fatalf("build the plugin: %v\n%s", err, out)
	}
	t.Logf("%d commands", len(all))
	for _, c := range all {
		if _, err := c.Run(t.Context(), folder, k.Config(), names...); err != nil {
			t.Error(err)
		}
	}
}
