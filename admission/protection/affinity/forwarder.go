package affinity

import (
	"context"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"knative.dev/pkg/apis"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/internal/webhookpeers"
)

const (
	// DecisionForwarded is how an answer is counted that the home gave; there it
	// is counted as what it is.
	DecisionForwarded = "Forwarded"
	// header marks a request that was handed on: it is decided where it arrives.
	forwardedHeader = "Breakwater-Forwarded"
	// patience is how long the home is waited for at most. A request that it does
	// not answer has to be decided here in the rest of its time.
	forwardTimeout = 2 * time.Second
)

// Peers knows the replicas.
type Peers interface {
	// Home returns the replica that decides about a namespace, or nil if that is
	// this one, or not known.
	DecidingPeer(namespace string) Peer
}

// Peer sends requests to another replica.
type Peer = webhookpeers.Doer

// Forwarder hands requests on to their home.
type Forwarder struct {
	// Next decides what is not handed on, and what the home does not answer.
	Next admission.Handler
	// Concerns says whether a request is one for the home.
	Matches func(*admissionv1.AdmissionRequest) bool
	Peers   Peers
}

var _ admission.Handler = Forwarder{}

// Admit implements admission.Handler.
func (f Forwarder) Admit(ctx context.Context, req *admissionv1.AdmissionRequest) admission.Answer {
	asked := apis.GetHTTPRequest(ctx)
	if asked == nil || Forwarded(ctx) || !f.Matches(req) {
		return f.Next.Admit(ctx, req)
	}
	// From here: what the home was waited for is not there to decide in.
	ctx, cancel := admission.WithDeadline(ctx)
	defer cancel()
	peer := f.Peers.DecidingPeer(req.Namespace)
	if peer == nil {
		return f.Next.Admit(ctx, req)
	}
	response, err := forward(ctx, peer, asked.URL.Path, req)
	if err != nil {
		logging.FromContext(ctx).Debugw("the home of the namespace did not answer, so it is decided here", "namespace", req.Namespace, "error", err)
		return f.Next.Admit(ctx, req)
	}
	return admission.Answer{Decision: DecisionForwarded, Response: response}
}

// Forwarded says whether a request was handed on by another replica. When that
// has waited for long enough it decides the request itself.
func Forwarded(ctx context.Context) bool {
	asked := apis.GetHTTPRequest(ctx)
	return asked != nil && asked.Header.Get(forwardedHeader) != ""
}

// Forward marks a request as handed on.
func MarkForwarded(h http.Header) { h.Set(forwardedHeader, "true") }

// ask asks a peer what we were asked, and leaves enough time to decide it here:
// ctx ends when the answer has to be given.
func forward(ctx context.Context, peer Peer, path string, req *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	deadline, _ := ctx.Deadline()
	wait := min(time.Until(deadline)/2, forwardTimeout)
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	marked := http.Header{}
	MarkForwarded(marked)
	return webhookpeers.SendReview(ctx, peer, path+"?timeout="+wait.String(), marked, req)
}
