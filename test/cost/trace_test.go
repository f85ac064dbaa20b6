//go:build controlplane

package cost

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/builder"
	"github.com/breakwater-dev/breakwater/test/e2e/clients"
	"github.com/breakwater-dev/breakwater/test/e2e/testnamespace"
)

// The release has 4 pods in 2 batches.
func TestAReleaseIsOneTraceAtACollector(t *testing.T) {
	c := clients.Require(t)
	serve(t, c)
	setBatch(t, c, "50")
	release := releaseOnce(t, c)
	id := strings.Split(release.Annotations[v1alpha1.TraceparentAnnotation], "-")
	if len(id) != 4 {
		t.Fatalf("the annotation of the release is %q", id)
	}
	// HTTP requests, reports of events and calls that a slow machine adds do not count.
	below := map[string][]string{
		"release": {"altershield submitChangeExecOrder", "altershield submitChangeExecOrderStartNotify", "altershield submitChangeFinishNotify",
			"batch", "batch", "rollout", "verdict POST", "verdict PRE"},
		"batch": {"altershield submitChangeExecBatchStartNotify", "altershield submitChangeFinishNotify", "verdict POST", "verdict PRE"},
	}
	var spans []span
	await(t, "the collector has the trace", func(context.Context) error {
		spans = traces.trace(id[1])
		for _, s := range spans {
			if want, ok := below[s.Name]; ok && !containsAll(descendants(spans, s), want) {
				return fmt.Errorf("below %s are %q", s.Name, descendants(spans, s))
			}
		}
		if n := count(spans, "release") + count(spans, "batch"); n != 3 {
			return fmt.Errorf("%d spans: %q", len(spans), names(spans))
		}
		return nil
	})
	for _, s := range spans {
		want, ok := below[s.Name]
		if !ok {
			continue
		}
		if diff := cmp.Diff(want, withoutRepetitions(descendants(spans, s))); diff != "" {
			t.Errorf("below %s (-want +got):\n%s", s.Name, diff)
		}
		if s.Name == "release" && (s.ID != id[2] || s.Parent != "") {
			t.Errorf("the root has id %s and parent %q, the annotation id %s", s.ID, s.Parent, id[2])
		}
	}
	checkRollout(t, spans, release)
}

func checkRollout(t *testing.T, spans []span, release *v1alpha1.ChangeWorkload) {
	t.Helper()
	seen := map[string]bool{}
	for _, s := range spans {
		if seen[s.ID] {
			t.Errorf("span %s %s is there twice", s.Name, s.ID)
		}
		seen[s.ID] = true
		if s.Name != "rollout" {
			continue
		}
		if got := s.attribute("breakwater.status") + " of " + s.attribute("breakwater.workload.name"); got != "Success of web" {
			t.Errorf("the rollout is %q", got)
		}
		if s.Start != release.CreationTimestamp.UnixNano() || s.End/1e9 != release.Status.EntryTimeUnix {
			t.Errorf("the rollout is from %d to %d, the release from %s to %s",
				s.Start, s.End, release.CreationTimestamp, release.Status.EntryTime)
		}
	}
}

// releaseOnce releases a Deployment of 4 pods in a namespace of its own, and returns its release, which has succeeded.
func releaseOnce(t *testing.T, c *clients.Clients) *v1alpha1.ChangeWorkload {
	t.Helper()
	namespace := testnamespace.OptedIn(t, c.Kube, "trace-")
	if _, err := c.Kube.AppsV1().Deployments(namespace).Create(t.Context(), builder.Deployment("web", 4, builder.Simulated), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var release *v1alpha1.ChangeWorkload
	await(t, "the release is a success", func(ctx context.Context) error {
		all, err := c.Breakwater.AppV1alpha1().ChangeWorkloads(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(all.Items) != 1 || all.Items[0].Status.Phase != v1alpha1.ReleaseSuccess {
			return fmt.Errorf("%d releases: %+v", len(all.Items), all.Items)
		}
		release = all.Items[0].DeepCopy()
		return nil
	})
	return release
}

// descendants returns the sorted names of the spans below a span, up to the next batch.
func descendants(spans []span, of span) []string {
	var out []string
	for _, s := range spans {
		if s.Parent != of.ID {
			continue
		}
		switch {
		case s.Name == "batch", s.Name == "rollout":
			out = append(out, s.Name)
			continue
		case s.Name == "verdict":
			out = append(out, "verdict "+s.attribute("breakwater.stage"))
		case strings.HasPrefix(s.Name, "altershield submit") && s.Name != "altershield submitChangeEventAction":
			out = append(out, s.Name)
		}
		out = append(out, descendants(spans, s)...)
	}
	slices.Sort(out)
	return out
}

// withoutRepetitions removes names that a repeated call adds; two batches are two.
func withoutRepetitions(sorted []string) []string {
	var out []string
	for _, name := range sorted {
		if name == "batch" || !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

func containsAll(got, want []string) bool {
	return !slices.ContainsFunc(want, func(name string) bool { return !slices.Contains(got, name) })
}

func count(spans []span, name string) (n int) {
	for _, s := range spans {
		if s.Name == name {
			n++
		}
	}
	return n
}

func names(spans []span) (out []string) {
	for _, s := range spans {
		out = append(out, s.Name)
	}
	return out
}
