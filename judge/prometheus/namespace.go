package prometheus

import "context"

type namespaceKey struct{}

// WithNamespace returns a context for the queries about a release in a namespace.
func WithNamespace(ctx context.Context, namespace string) context.Context {
	return context.WithValue(ctx, namespaceKey{}, namespace)
}

// Namespace returns the namespace of a context, "" if it has none.
func Namespace(ctx context.Context) string {
	namespace, _ := ctx.Value(namespaceKey{}).(string)
	return namespace
}
