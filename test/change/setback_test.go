//go:build controlplane

package change

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
	runner "github.com/breakwater-dev/breakwater/test/e2e/kubectl"
)

// A namespace that is opted out stands for a webhook that is unreachable.
func TestASavedManifestThatTheWebhookMissedIsTheNextAttempt(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		kind   workload.Kind
		object any
	}{
		"Deployment":  {workload.Deployment, builder.Deployment("web", replicas, builder.Simulated, builder.Paced(1))},
		"StatefulSet": {workload.StatefulSet, builder.StatefulSet("web", replicas, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t).create(t, tc.kind, tc.object)
			w.awaitSaved(t, 1)
			saved, err := w.live(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			unstructured.RemoveNestedField(saved.Object, "metadata", "resourceVersion") // the API server denies a former one
			manifest, err := saved.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			w.mustPatch(t, releaseOf("v2"))
			w.awaitBatch(t, 2)
			kubectl(t, "", "label", "namespace", w.namespace, v1alpha1.NamespaceLabel+"-")
			// kubectl reads the resourceVersion first, and the controllers write at this time.
			await(t, "the replacement", func(ctx context.Context) error {
				_, err := runner.Kubectl{}.Output(ctx, string(manifest), "replace", "-f", "-")
				return err
			})
			kubectl(t, "", "label", "namespace", w.namespace, v1alpha1.NamespaceLabel+"="+v1alpha1.NamespaceEnabled)
			if c := w.awaitSaved(t, 3); c.Spec.Reversion != saved.GetLabels()[v1alpha1.VersionKey] {
				t.Errorf("attempt 3 is version %s, want %s", c.Spec.Reversion, saved.GetLabels()[v1alpha1.VersionKey])
			}
		})
	}
}
