package functions_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/breakwater-dev/breakwater/functions"
)

func TestATriggerHearsOnlyThreeAnswers(t *testing.T) {
	resource := schema.GroupResource{Resource: "changepods"}
	for name, tc := range map[string]struct {
		err  error
		want int
	}{
		"it worked":                            {nil, http.StatusOK},
		"it can never work":                    {functions.Permanentf("no"), http.StatusBadRequest},
		"it can never work, deep inside":       {fmt.Errorf("a: %w", functions.Permanent(errors.New("b"))), http.StatusBadRequest},
		"the schema refuses the status":        {apierrors.NewInvalid(schema.GroupKind{}, "a", nil), http.StatusBadRequest},
		"somebody else wrote":                  {apierrors.NewConflict(resource, "a", nil), http.StatusServiceUnavailable},
		"the API server is busy":               {apierrors.NewTooManyRequestsError("later"), http.StatusServiceUnavailable},
		"we may not":                           {apierrors.NewForbidden(resource, "a", nil), http.StatusServiceUnavailable},
		"it took too long":                     {context.DeadlineExceeded, http.StatusServiceUnavailable},
		"something that nobody has thought of": {errors.New("x"), http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			if got := functions.FateOf(tc.err).Status(); got != tc.want {
				t.Errorf("status is %d, want %d", got, tc.want)
			}
		})
	}
}

func TestNoErrorIsNotPermanent(t *testing.T) {
	if err := functions.Permanent(nil); err != nil {
		t.Errorf("got %v", err)
	}
}
