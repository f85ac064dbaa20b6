package affinity

import (
	"context"
	"errors"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"knative.dev/pkg/apis"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/internal/webhookpath"
	"github.com/breakwater-dev/breakwater/internal/webhookpeers"
)

const (
	// DecisionForwarded means that another replica decided and counts the decision.
	DecisionForwarded = "Forwarded"
	// forwardedHeader marks a forwarded request, which must not be forwarded again.
	forwardedHeader = "Breakwater-Forwarded"
	// forwardTimeout is how long a forwarded request may take. After that, this
	// replica decides it in the remaining time.
	forwardTimeout = 2 * time.Second
)

// Peers selects the deciding replica.
type Peers interface {
	// DecidingPeer returns the replica that decides for a namespace; nil if it is
	// this replica or unknown.
	DecidingPeer(namespace string) Peer
}

// Peer sends requests to another replica.
type Peer = webhookpeers.Doer

// Forwarder forwards requests to the deciding replica.
type Forwarder struct {
	// Next decides requests that are not forwarded or not answered.
	Next admission.Handler
	// Matches reports whether a request may be forwarded.
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
	// The deadline includes the time that forwarding takes.
	ctx, cancel := admission.WithDeadline(ctx)
	defer cancel()
	peer := f.Peers.DecidingPeer(req.Namespace)
	if peer == nil {
		return f.Next.Admit(ctx, req)
	}
	response, err := forward(ctx, peer, webhookpath.Of(asked), req)
	if err == nil && admission.Undecided(response) {
		err = errors.New("the deciding replica could not decide")
	}
	if err != nil {
		logging.FromContext(ctx).Debugw("deciding locally: no decision by the deciding replica", "namespace", req.Namespace, "error", err)
		return f.Next.Admit(ctx, req)
	}
	return admission.Answer{Decision: DecisionForwarded, Response: response}
}

// Forwarded reports whether another replica forwarded the request. That replica decides
// the request itself if it gets no answer in time.
func Forwarded(ctx context.Context) bool {
	asked := apis.GetHTTPRequest(ctx)
	return asked != nil && asked.Header.Get(forwardedHeader) != ""
}

// MarkForwarded marks a request as forwarded.
func MarkForwarded(h http.Header) { h.Set(forwardedHeader, "true") }

// forward sends the request to a peer and leaves time to decide it locally. The
// deadline of ctx is that of the answer.
func forward(ctx context.Context, peer Peer, path string, req *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	deadline, _ := ctx.Deadline()
	wait := min(time.Until(deadline)/2, forwardTimeout)
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	marked := http.Header{}
	MarkForwarded(marked)
	return webhookpeers.SendReview(ctx, peer, path+"?timeout="+wait.String(), marked, req)
}
