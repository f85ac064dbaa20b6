//go:build e2e && soak

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/knativetraffic"
	"github.com/breakwater-dev/breakwater/internal/workload"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
)

// TestFiftyKnativeServices releases 50 Services at once, with real Revisions, autoscaler and Routes. A third of
// the releases fail.
func TestFiftyKnativeServices(t *testing.T) {
	const services, within = 50, 15 * time.Minute
	e := newEnvironment(t)
	configure(t, e)
	n := e.optedInNamespace(t)
	kind, image := workload.KnativeService, n.imageOfDouble(t)
	var manifest strings.Builder
	names := make([]string, services)
	bad := func(i int) bool { return i%3 == 0 }
	var checks []double.CheckRule
	for i := range names {
		names[i] = fmt.Sprintf("web-%d", i+1)
		one := strings.Replace(fmt.Sprintf(knativeService, image), `"name":"web"`, fmt.Sprintf(`"name":%q`, names[i]), 1)
		fmt.Fprintln(&manifest, one+"\n---")
		if bad(i) {
			match := batch(1, double.Post)
			match.Workload = names[i]
			checks = append(checks, double.CheckRule{Match: match, Then: failed()})
		}
	}
	began := time.Now()
	n.applyManifest(t, manifest.String())
	good := make([]string, services)
	for i, name := range names {
		n.awaitAttempt(t, within, kind, name, 1, v1alpha1.ReleaseSuccess)
		n.awaitSavedTemplate(t, kind, name, 1)
		good[i] = name + "-00001"
	}
	t.Logf("%d first releases succeeded in %s", services, time.Since(began).Round(time.Second))
	n.setChecks(t, checks...)
	requests := n.sendRequests(t, names[0])
	requests.awaitOnly(t, good[0])

	began = time.Now()
	errs := make([]error, services)
	var patches sync.WaitGroup
	for i, name := range names {
		patches.Go(func() {
			_, errs[i] = n.dynamic.Resource(kind.GroupVersionResource()).Namespace(n.name).
				Patch(t.Context(), name, types.MergePatchType, []byte(releaseOf("v2")), metav1.PatchOptions{})
		})
	}
	patches.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		want := v1alpha1.ReleaseSuccess
		if bad(i) {
			want = v1alpha1.ReleaseSuspend
		}
		c := n.awaitAttempt(t, within, kind, name, 2, want)
		w, err := n.readWorkload(t.Context(), kind, name)
		if err != nil {
			t.Fatal(err)
		}
		split := knativetraffic.Split{{"latestRevision": true, "percent": int64(100)}}
		if bad(i) {
			split = knativetraffic.Split{{"revisionName": good[i], "percent": int64(100)}}
		}
		if !knativetraffic.Same(split, w.Traffic) {
			t.Errorf("%s: traffic %v, want %v", name, w.Traffic, split)
		}
		if c.Status.Counts.Unjudged > 0 {
			t.Errorf("%s has %d unjudged pods", c.Name, c.Status.Counts.Unjudged)
		}
	}
	t.Logf("%d releases, %d of them bad, ended in %s", services, len(checks), time.Since(began).Round(time.Second))
	requests.awaitOnly(t, good[0])
	t.Log(names[0] + ": " + requests.shareOf(names[0]+"-00002"))
	n.checkKindOfReleases(t, kind)
}
