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

func TestErrorsMapToThreeStatusCodes(t *testing.T) {
	resource := schema.GroupResource{Resource: "changepods"}
	for name, tc := range map[string]struct {
		err  error
		want int
	}{
		"no error":                 {nil, http.StatusOK},
		"permanent error":          {functions.Permanentf("no"), http.StatusBadRequest},
		"wrapped permanent error":  {fmt.Errorf("a: %w", functions.Permanent(errors.New("b"))), http.StatusBadRequest},
		"status violates schema":   {apierrors.NewInvalid(schema.GroupKind{}, "a", nil), http.StatusBadRequest},
		"conflict":                 {apierrors.NewConflict(resource, "a", nil), http.StatusServiceUnavailable},
		"API server is overloaded": {apierrors.NewTooManyRequestsError("later"), http.StatusServiceUnavailable},
		"forbidden":                {apierrors.NewForbidden(resource, "a", nil), http.StatusServiceUnavailable},
		"timeout":                  {context.DeadlineExceeded, http.StatusServiceUnavailable},
		"unknown error":            {errors.New("x"), http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			if got := functions.ResultOf(tc.err).Status(); got != tc.want {
				t.Errorf("status is %d, want %d", got, tc.want)
			}
		})
	}
}

func TestPermanentOfNilIsNil(t *testing.T) {
	if err := functions.Permanent(nil); err != nil {
		t.Errorf("got %v", err)
	}
}
