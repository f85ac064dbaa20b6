package budget

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

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
type prober struct {
	kube   kubernetes.Interface
	client policyclient.PodUnavailableBudgetsGetter
	turns  *replicaTurns

	mu sync.Mutex
	// answered are the replicas that answered a dry run, by probe.
	answered map[string]sets.Set[string]
}

// newProber returns a prober with its own client, whose warnings it handles.
func newProber(config *rest.Config, kube kubernetes.Interface) (*prober, error) {
	p := &prober{kube: kube, turns: newReplicaTurns(clock.RealClock{}), answered: map[string]sets.Set[string]{}}
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
func (p *prober) Probe(ctx context.Context, b *v1alpha1.PodUnavailableBudget) (answered, all sets.Set[string], err error) {
	list, err := webhookpeers.List(ctx, p.kube.DiscoveryV1(), webhookService)
	ready := webhookpeers.AddressesByName(list)
	all = sets.KeySet(ready)
	if err != nil || len(all) == 0 {
		return nil, all, err
	}
	p.turns.keep(all)
	probe := string(uuid.NewUUID())
	if answered, err = p.dryRun(ctx, b, probe); err != nil || len(answered) == 0 {
		return nil, all, err
	}
	caller, err := p.directProber(ctx)
	if err != nil {
		return nil, all, err
	}
	for name, address := range ready {
		if answered.Has(name) {
			continue
		}
		var answer budget.ProbeAnswer
		err := p.turns.probe(ctx, name, func() (err error) {
			answer, err = caller.probe(ctx, address, b, probe)
			return err
		})
		// An unreachable replica has not answered.
		if err == nil && answer.Probe == probe && answer.Replica == name {
			answered.Insert(name)
		}
	}
	return answered, all, nil
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
	return answered, err
}

// directProber returns a prober that trusts the CA that the API server trusts.
func (p *prober) directProber(ctx context.Context) (*directProber, error) {
	config, err := p.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, webhookConfiguration, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the webhook configuration: %w", err)
	}
	for _, w := range config.Webhooks {
		if len(w.ClientConfig.CABundle) > 0 && w.ClientConfig.Service != nil && w.ClientConfig.Service.Path != nil {
			return newDirectProber(w.ClientConfig.CABundle, *w.ClientConfig.Service.Path)
		}
	}
	return nil, errors.New("the webhook configuration has no caBundle yet")
}
