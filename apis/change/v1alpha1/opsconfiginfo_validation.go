package v1alpha1

import (
	"context"
	"fmt"
	"strings"

	"knative.dev/pkg/apis"
)

// SetDefaults trims space around the type and the content. It sets no default: the name is
// that of apis.Defaultable, which the reconciler calls.
func (c *OpsConfigInfo) SetDefaults(context.Context) {
	c.Spec.Type = ConfigType(strings.TrimSpace(string(c.Spec.Type)))
	c.Spec.Content = strings.TrimSpace(c.Spec.Content)
}

// Validate rejects unknown types and invalid content. The content of a disabled object
// must be valid or empty, so that enabling it later does not fail.
func (c *OpsConfigInfo) Validate(ctx context.Context) *apis.FieldError {
	if apis.IsInDelete(ctx) || apis.IsInStatusUpdate(ctx) {
		return nil
	}
	if !KnownConfigType(c.Spec.Type) {
		return &apis.FieldError{
			Message: fmt.Sprintf("unknown type %q", c.Spec.Type),
			Paths:   []string{"spec.type"},
			Details: "known types are " + strings.Join(ConfigTypes(), ", "),
		}
	}
	if !c.Spec.Enable && c.Spec.Content == "" {
		return nil
	}
	if err := ValidateContent(c.Spec.Type, c.Spec.Content); err != nil {
		return &apis.FieldError{
			Message: fmt.Sprintf("invalid content for type %s", c.Spec.Type),
			Paths:   []string{"spec.content"},
			Details: err.Error(),
		}
	}
	return nil
}
