package budget

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/uuid"
	discoveryclient "k8s.io/client-go/kubernetes/typed/discovery/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	changev1alpha1 "github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/apis/policy/budget"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	versioned "github.com/breakwater-dev/breakwater/client/clientset/versioned"
	policyclient "github.com/breakwater-dev/breakwater/client/clientset/versioned/typed/policy/v1alpha1"
)

// webhookService is the Service of the webhook in the system namespace.
const webhookService = "protection-webhook"

const (
	// together is how many probes are on their way at once: the API server
	// reuses a connection that is idle, and so would ask one replica for ever.
	together = 8
	// rounds is how often that is tried.
	rounds = 4
)

// prober asks by dry runs, whose answers come back as warnings.
type prober struct {
	client policyclient.PodUnavailableBudgetsGetter
	slices discoveryclient.EndpointSlicesGetter

	mu sync.Mutex
	// heard is who answered, by probe.
	heard map[string]sets.Set[string]
}

// newProber returns one with a client of its own, whose warnings it reads.
func newProber(config *rest.Config, slices discoveryclient.EndpointSlicesGetter) (*prober, error) {
	p := &prober{slices: slices, heard: map[string]sets.Set[string]{}}
	config = rest.CopyConfig(config)
	config.WarningHandler, config.WarningHandlerWithContext = p, nil
	client, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create the client of probes: %w", err)
	}
	p.client = client.PolicyV1alpha1()
	return p, nil
}

// HandleWarningHeader implements rest.WarningHandler.
func (p *prober) HandleWarningHeader(_ int, _, text string) {
	answer, ok := budget.ParseHeard(text)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if answers, ok := p.heard[answer.Probe]; ok {
		answers.Insert(answer.Replica)
	}
}

// Probe implements Prober.
func (p *prober) Probe(ctx context.Context, b *v1alpha1.PodUnavailableBudget) (heard, all sets.Set[string], err error) {
	if all, err = p.replicas(ctx); err != nil || len(all) == 0 {
		return nil, all, err
	}
	probe := string(uuid.NewUUID())
	p.mu.Lock()
	p.heard[probe] = sets.New[string]()
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.heard, probe)
	}()
	for range rounds {
		if err = p.send(ctx, b, probe); err != nil {
			return nil, all, err
		}
		if heard = p.answers(probe); len(heard) == 0 || heard.IsSuperset(all) {
			break
		}
	}
	return heard, all, nil
}

func (p *prober) answers(probe string) sets.Set[string] {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.heard[probe].Clone()
}

func (p *prober) send(ctx context.Context, b *v1alpha1.PodUnavailableBudget, probe string) error {
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:%s}}}`, b.UID, v1alpha1.ProbeAnnotation, strconv.Quote(probe))
	group, ctx := errgroup.WithContext(ctx)
	for range together {
		group.Go(func() error {
			_, err := p.client.PodUnavailableBudgets(b.Namespace).Patch(ctx, b.Name, types.MergePatchType, []byte(patch),
				metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		})
	}
	return group.Wait()
}

// replicas are those that the API server may ask.
func (p *prober) replicas(ctx context.Context) (sets.Set[string], error) {
	slices, err := p.slices.EndpointSlices(changev1alpha1.SystemNamespace).List(ctx, metav1.ListOptions{
		LabelSelector: discoveryv1.LabelServiceName + "=" + webhookService,
	})
	if err != nil {
		return nil, fmt.Errorf("list the endpoints of the webhook: %w", err)
	}
	all := sets.New[string]()
	for _, s := range slices.Items {
		for _, e := range s.Endpoints {
			if ptr.Deref(e.Conditions.Ready, true) && e.TargetRef != nil {
				all.Insert(e.TargetRef.Name)
			}
		}
	}
	return all, nil
}
