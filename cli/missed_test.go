package cli

import (
	"io"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/breakwater-dev/breakwater/cli/diagnosis"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// The annotations of the release before stay on the workload, and its ChangeWorkload passed.
func TestStatusPassesNoTemplateThatWasNotJudged(t *testing.T) {
	first := at(1, "busybox:1")
	for name, tc := range map[string]struct {
		c    *clients
		want diagnosis.State
	}{
		"a release that passed":                        {cluster(t, optedIn, first, first), diagnosis.StatePassed},
		"a template that the webhook did not see":      {cluster(t, optedIn, at(1, "busybox:1", builder.Image("busybox:2")), first), diagnosis.StateRunning},
		"a namespace that is not opted in any more":    {cluster(t, namespace(nil), at(1, "busybox:1", builder.Image("busybox:2")), first), diagnosis.StateNotJudged},
		"a version that the plugin computes otherwise": {cluster(t, optedIn, at(1, "busybox:1", ofWebhook), at(1, "busybox:1", ofWebhook)), diagnosis.StatePassed},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := (&app{}).awaitRelease(t.Context(), tc.c, "deployment/sleep", 0)
			if err != nil || answer.State != tc.want {
				t.Errorf("got %+v, %v, want %s", answer, err, tc.want)
			}
			if passed := exitOf(answer, 0) == nil; passed != (tc.want == diagnosis.StatePassed) {
				t.Errorf("exit code 0 is %t for %s", passed, answer.State)
			}
		})
	}
}

func TestARollbackLeavesTheLiveTemplate(t *testing.T) {
	first, second := at(1, "busybox:1"), at(2, "busybox:2")
	missed := at(2, "busybox:2", builder.Image("busybox:3"))
	for name, tc := range map[string]struct {
		live     *appsv1.Deployment
		to, want string
	}{
		"from the current release":                {second, "", "busybox:1"},
		"from a template that the webhook missed": {missed, "", "busybox:2"},
		"to the version before, which passed":     {missed, builder.Version(second), "busybox:2"},
		"from a former template, applied again":   {at(2, "busybox:2", builder.Image("busybox:1")), "", "busybox:2"},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, optedIn, tc.live, first, second)
			target, err := c.workload(t.Context(), "deployment/sleep")
			if err != nil {
				t.Fatal(err)
			}
			streams := genericiooptions.IOStreams{Out: io.Discard, ErrOut: io.Discard}
			if err := (&app{IOStreams: streams}).rollback(t.Context(), c, target, tc.to); err != nil {
				t.Fatal(err)
			}
			if target, err = c.workload(t.Context(), "deployment/sleep"); err != nil {
				t.Fatal(err)
			}
			after, err := workload.FromUnstructured(target.kind(), target.object)
			if err != nil || after.Template.Spec.Containers[0].Image != tc.want {
				t.Errorf("rolled back to %s, %v, want %s", after.Template.Spec.Containers[0].Image, err, tc.want)
			}
		})
	}
}
