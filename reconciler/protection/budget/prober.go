package budget

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	versioned "github.com/breakwater-dev/breakwater/client/clientset/versioned"
	policyclient "github.com/breakwater-dev/breakwater/client/clientset/versioned/typed/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
	"github.com/breakwater-dev/breakwater/internal/webhookpeers"
)

// Names in the manifests of the webhook.
const (
	webhookService       = "protection-webhook"
	webhookConfiguration = "breakwater-protection"
)

// prober probes in two ways. A dry run through the API server shows that requests
// about pods of the namespace reach the webhook; the answer is a warning. But the API
// server selects the replica and reuses connections, so the other replicas are probed
// directly.
//
// Each budget is probed again every probeInterval. These probes share what is the same for all of
// them: one dry run for a namespace, and what they read about the webhook.
type prober struct {
	kube   kubernetes.Interface
	client policyclient.PodUnavailableBudgetsGetter
	turns  *replicaTurns
	clock  clock.PassiveClock

	mu sync.Mutex
	// answered are the replicas that answered a dry run, by probe.
	answered map[string]sets.Set[string]
	// reached is when a dry run in a namespace reached the webhook last.
	reached map[string]time.Time
	// known is what was read last about the webhook.
	known webhookState
}

// webhookState is what a probe needs to know about the webhook.
type webhookState struct {
	read time.Time
	// ready are the addresses of the ready replicas.
	ready  map[string]string
	direct *directProber
}

const (
	// webhookKnownFor is how long probes that are repeated use what was read about the webhook.
	webhookKnownFor = 10 * time.Second
	// reachedFor is how long they rely on a dry run about another budget of the namespace. So it is found
	// within probeInterval and reachedFor that requests of the namespace do not reach the webhook any more.
	reachedFor = probeInterval / 2
)

// newProber returns a prober with its own client, whose warnings it handles.
func newProber(config *rest.Config, kube kubernetes.Interface) (*prober, error) {
	p := &prober{kube: kube, turns: newReplicaTurns(clock.RealClock{}), clock: clock.RealClock{},
		answered: map[string]sets.Set[string]{}, reached: map[string]time.Time{}}
	config = rest.CopyConfig(config)
	config.WarningHandler, config.WarningHandlerWithContext = p, nil
	client, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create probe client: %w", err)
	}
	p.client = client.PolicyV1alpha1()
	return p, nil
}

// HandleWarningHeader implements rest.WarningHandler.
func (p *prober) HandleWarningHeader(_ int, _, text string) {
	answer, ok := budget.ParseProbeAnswer(text)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if answers, ok := p.answered[answer.Probe]; ok {
		answers.Insert(answer.Replica)
	}
}

// Probe implements Prober.
func (p *prober) Probe(ctx context.Context, b *v1alpha1.PodUnavailableBudget, again bool) (answered, all sets.Set[string], err error) {
	hook, err := p.webhook(ctx, again)
	all = sets.KeySet(hook.ready)
	if err != nil || len(all) == 0 {
		return nil, all, err
	}
	p.turns.keep(all)
	probe := string(uuid.NewUUID())
	answered = sets.New[string]()
	if !again || !p.wasReached(b.Namespace) {
		if answered, err = p.dryRun(ctx, b, probe); err != nil || len(answered) == 0 {
			return nil, all, err
		}
	}
	if hook.direct == nil {
		if hook.direct, err = p.directProber(ctx); err != nil {
			return nil, all, err
		}
		p.keep(hook)
	}
	for name, address := range hook.ready {
		if answered.Has(name) {
			continue
		}
		var answer budget.ProbeAnswer
		err := p.turns.probe(ctx, name, func() (err error) {
			answer, err = hook.direct.probe(ctx, address, b, probe)
			return err
		})
		// An unreachable replica has not answered.
		if err == nil && answer.Probe == probe && answer.Replica == name {
			answered.Insert(name)
		}
	}
	if again && !answered.IsSuperset(all) { // the replicas may have changed
		return p.Probe(ctx, b, false)
	}
	return answered, all, nil
}

// webhook reads the replicas of the webhook. If it may return what was read before, that includes the direct
// prober.
func (p *prober) webhook(ctx context.Context, readBefore bool) (webhookState, error) {
	now := p.clock.Now()
	if readBefore {
		p.mu.Lock()
		known := p.known
		p.mu.Unlock()
		if now.Sub(known.read) < webhookKnownFor {
			return known, nil
		}
	}
	list, err := webhookpeers.List(ctx, p.kube.DiscoveryV1(), webhookService)
	return webhookState{read: now, ready: webhookpeers.AddressesByName(list)}, err
}

func (p *prober) keep(w webhookState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = w
}

// wasReached reports whether a dry run in the namespace reached the webhook within reachedFor.
func (p *prober) wasReached(namespace string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, found := p.reached[namespace]
	return found && p.clock.Since(at) < reachedFor
}

// dryRun probes through the API server.
func (p *prober) dryRun(ctx context.Context, b *v1alpha1.PodUnavailableBudget, probe string) (sets.Set[string], error) {
	p.mu.Lock()
	p.answered[probe] = sets.New[string]()
	p.mu.Unlock()
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:%s}}}`, b.UID, v1alpha1.ProbeAnnotation, strconv.Quote(probe))
	_, err := p.client.PodUnavailableBudgets(b.Namespace).Patch(ctx, b.Name, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	p.mu.Lock()
	defer p.mu.Unlock()
	answered := p.answered[probe]
	delete(p.answered, probe)
	now := p.clock.Now()
	maps.DeleteFunc(p.reached, func(_ string, at time.Time) bool { return now.Sub(at) >= reachedFor })
	if delete(p.reached, b.Namespace); len(answered) > 0 {
		p.reached[b.Namespace] = now
	}
	return answered, err
}

// directProber returns a prober that trusts the CA that the API server trusts. It is the last one, whose
// connections can be used again, unless the CA or the path has changed.
func (p *prober) directProber(ctx context.Context) (*directProber, error) {
	config, err := p.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, webhookConfiguration, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the webhook configuration: %w", err)
	}
	p.mu.Lock()
	last := p.known.direct
	p.mu.Unlock()
	for _, w := range config.Webhooks {
		bundle, service := w.ClientConfig.CABundle, w.ClientConfig.Service
		if len(bundle) == 0 || service == nil || service.Path == nil {
			continue
		}
		if last != nil && last.path == *service.Path && bytes.Equal(last.bundle, bundle) {
			return last, nil
		}
		return newDirectProber(bundle, *service.Path)
	}
	return nil, errors.New("the webhook configuration has no caBundle yet")
}
