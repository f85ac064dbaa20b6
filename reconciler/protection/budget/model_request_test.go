package budget

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/admission"
	webhook "github.com/breakwater-dev/breakwater/admission/protection/budget"
	"github.com/breakwater-dev/breakwater/internal/budget"
)

const (
	// webhookTimeout is timeoutSeconds of the webhook configuration.
	webhookTimeout = 5 * time.Second
	// requestTimeout is the default --request-timeout of the API server.
	requestTimeout = time.Minute
)

// requestState is the state of a deletion in the API server.
type requestState int

const (
	stateAsking  requestState = iota // the webhook decides
	stateAllowed                     // it has allowed; the deletion is not carried out yet
	stateEnded
)

// deletion is a DELETE or an eviction of a pod in the API server.
type deletion struct {
	id      int
	evict   bool
	force   bool
	replica int
	// dryRun says that nothing is deleted. The body of an eviction may say so, and
	// not the request.
	dryRun, dryRunInBody bool
	started, asked       time.Time

	state requestState
	// pod is the pod as the webhook was asked about it.
	pod    *corev1.Pod
	cancel context.CancelFunc
	// answer has the answer of the webhook until it is received; allowed is what it was.
	answer  chan admission.Answer
	allowed bool

	// certain says that the pod was available, not charged and not about to be
	// deleted when the webhook was asked, and was available ever since: then it
	// has to fit into the budgets at some time before it is allowed.
	certain bool
	// wasUnavailable says that the pod was not available at some time since.
	wasUnavailable bool
	// fitted are the budgets into which it fitted at some time.
	fitted map[string]bool
	// neverFull says that all budgets had room for it ever since the webhook was asked:
	// then no budget may deny it.
	neverFull bool
}

func (r *deletion) String() string {
	verb := "delete"
	if r.evict {
		verb = "evict"
	}
	if r.dryRun {
		verb += " (dry run)"
	}
	return fmt.Sprintf("%s %s (request %d)", verb, r.pod.Name, r.id)
}

func (r *deletion) review() *admissionv1.AdmissionRequest {
	inRequest := r.dryRun && !r.dryRunInBody
	req := &admissionv1.AdmissionRequest{
		UID: types.UID(fmt.Sprint(r.id)), Operation: admissionv1.Delete, Namespace: "ns", Name: r.pod.Name, DryRun: &inRequest,
		Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"}, OldObject: encode(r.pod),
	}
	if r.evict {
		req.Operation, req.SubResource, req.OldObject = admissionv1.Create, "eviction", runtime.RawExtension{}
		e := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: r.pod.Name}}
		if r.dryRun {
			e.DeleteOptions = &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
		}
		req.Object = encode(e)
	}
	return req
}

func encode(o any) runtime.RawExtension {
	data, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return runtime.RawExtension{Raw: data}
}

// ask asks the webhook about a pod.
func (m *budgetModel) ask(r *deletion, p *corev1.Pod) {
	ctx, cancel := context.WithCancel(m.ctx)
	r.state, r.pod, r.cancel, r.asked, r.answer, r.wasUnavailable, r.fitted, r.neverFull = stateAsking, p, cancel, time.Now(), make(chan admission.Answer, 1), false, map[string]bool{}, true
	r.certain = !r.dryRun && budget.Healthy(p) && !m.mayBeDeleted(p.UID, r)
	for _, b := range m.api.budgets {
		r.certain = r.certain && !m.admitter.Charged(b.Name).Has(p.UID)
	}
	answer, replica, review := r.answer, r.replica, r.review()
	go func() { answer <- m.admitter.Admit(ctx, replica, review) }()
}

// mayBeDeleted reports whether another request about the pod is admitted, or may be.
func (m *budgetModel) mayBeDeleted(uid types.UID, but *deletion) bool {
	for _, r := range m.requests {
		if r != but && r.state != stateEnded && !r.dryRun && r.pod.UID == uid {
			return true
		}
	}
	return m.deleted[uid]
}

// end ends a request without an effect.
func (r *deletion) end() {
	r.state = stateEnded
	r.cancel()
}

// receive receives the answer of the webhook.
func (m *budgetModel) receive(r *deletion) {
	m.observe()
	answer := <-r.answer
	if r.allowed = answer.Response.Allowed; !r.allowed {
		if r.neverFull && answer.Decision == webhook.DecisionDenied {
			m.fail("%s was denied, but the budgets had room for it all the time", r)
		}
		r.end()
		return
	}
	r.cancel() // the HTTP request has ended
	r.state = stateAllowed
	for _, b := range m.api.budgets {
		if r.certain && !r.fitted[b.Name] {
			m.fail("%s was allowed, but never fitted into budget %s: at revision %d %d pods are available, %d have to be", r, b.Name,
				m.admitter.Known(b.Name), m.knownAvailable(b.Name, ""), m.desired(b))
		}
	}
}

// carryOut carries out an allowed deletion. The API server asks the webhook again if
// the pod has changed since; an eviction is not compared with what the webhook read.
func (m *budgetModel) carryOut(r *deletion) {
	p, exists := m.api.pods[r.pod.Name]
	switch {
	case r.dryRun, !exists:
		r.end()
	case !r.evict && p.ResourceVersion != r.pod.ResourceVersion:
		m.ask(r, p)
	case r.evict && !m.evictable(r, p):
		r.end()
	default:
		m.deleted[p.UID] = budget.Healthy(p)
		r.end()
		m.workload.delete(p, r.force)
	}
}

// evictionsRace lets an eviction take effect on a pod that has become Ready, or was
// replaced, since the webhook decided that it costs nothing. The API server does so,
// because it does not compare the pod with the one that the webhook read. With true
// the test fails: such an eviction exceeds the budget, which is a known limitation.
const evictionsRace = false

// evictable reports whether an allowed eviction takes effect.
func (m *budgetModel) evictable(r *deletion, p *corev1.Pod) bool {
	return evictionsRace || p.UID == r.pod.UID && (!r.wasUnavailable || !budget.Healthy(p))
}
