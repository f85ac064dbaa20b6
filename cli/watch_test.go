package cli

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

func TestAWatchGoesOnAfterAnErrorThatMayPass(t *testing.T) {
	for name, tc := range map[string]struct {
		err   error
		final bool
	}{
		"the API server restarts": {apierrors.NewServiceUnavailable("restarting"), false},
		"the right was removed":   {apierrors.NewForbidden(v1alpha1.Resource("changeworkloads"), "", nil), true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var out, errOut bytes.Buffer
			shown := 0
			err := (&app{IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: &errOut}}).watch(ctx, cluster(t, optedIn, at(1, "busybox:1")), "default", func(_ context.Context, w io.Writer) error {
				if shown++; shown == 1 {
					return tc.err
				}
				defer cancel()
				_, err := io.WriteString(w, "a tree")
				return err
			})
			if (err != nil) != tc.final || (out.String() == "a tree") == tc.final || strings.Contains(errOut.String(), tc.err.Error()) == tc.final {
				t.Errorf("got %v, printed %q and %q", err, out.String(), errOut.String())
			}
		})
	}
}
