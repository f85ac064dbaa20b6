package releasetrace

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// traceparent is the key of the W3C trace context.
const traceparent = "traceparent"

// OfRelease returns ctx with the root span of a ChangeWorkload, or ctx if the release has no trace.
// Spans and events with this context belong to the trace.
func OfRelease(ctx context.Context, c *v1alpha1.ChangeWorkload) context.Context {
	return with(ctx, rootOf(c))
}

// OfBatch is OfRelease with the span of a ChangePod.
func OfBatch(ctx context.Context, c *v1alpha1.ChangePod) context.Context {
	return with(ctx, batchOf(c))
}

func with(ctx context.Context, span trace.SpanContext) context.Context {
	if !span.IsValid() {
		return ctx
	}
	return trace.ContextWithRemoteSpanContext(ctx, span)
}

// rootOf returns the root span in the annotation of an object; invalid if there is none.
func rootOf(o metav1.Object) trace.SpanContext {
	value, ok := o.GetAnnotations()[v1alpha1.TraceparentAnnotation]
	if !ok {
		return trace.SpanContext{}
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{traceparent: value})
	return trace.SpanContextFromContext(ctx)
}

// batchOf returns the span of a ChangePod; invalid if there is no trace.
func batchOf(c *v1alpha1.ChangePod) trace.SpanContext {
	root := rootOf(c)
	if !root.IsValid() {
		return root
	}
	return root.WithSpanID(spanID(string(c.UID)))
}

// annotationOf returns the annotation with the context of a span.
func annotationOf(span trace.SpanContext) map[string]string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(context.Background(), span), carrier)
	return map[string]string{v1alpha1.TraceparentAnnotation: carrier[traceparent]}
}
