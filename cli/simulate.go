package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/breakwater-dev/breakwater/cli/diagnosis"
	"github.com/breakwater-dev/breakwater/internal/text"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// maxSimulated is the maximum number of pods of a simulated drain.
const maxSimulated = 1000

// simulated is the result of one simulated request.
type simulated struct {
	Object    string `json:"object"`
	Namespace string `json:"namespace,omitempty"`
	// Allowed: the API server and the webhooks would admit the request.
	Allowed bool `json:"allowed"`
	// Code is the answer of the API server, and 0 if the request is allowed.
	Code    int32  `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	// Warnings are those of the API server, with the reason and ways out of a denial.
	Warnings []string `json:"warnings"`
}

func (a *app) simulateCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "simulate",
		Short: "Simulate requests: which would be denied, and why",
		Long: `Simulate requests: which would be denied, and why. Each request is a dry run: the webhooks decide
as always, and nothing changes. Each request is decided alone: of several that are allowed, later
ones may be denied when they are made. Exit code 1: at least one would be denied or rejected.`,
		// Without Args and RunE, cobra prints the help with exit code 0, also for an unknown command.
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("write what to simulate: delete, evict, drain or apply")
		},
	}
	c.AddCommand(a.simulateDelete(), a.simulateEvict(), a.simulateDrain(), a.simulateApply())
	return c
}

// simulation is a command that makes dry runs. collect returns the warnings since the
// last call.
func (a *app) simulation(c *cobra.Command, run func(ctx context.Context, c *clients, args []string, collect func() []string) ([]simulated, error)) *cobra.Command {
	var format string
	c.RunE = func(cmd *cobra.Command, args []string) error {
		warnings := &warningCollector{}
		a.flags.WrapConfigFn = func(config *rest.Config) *rest.Config {
			config.Wrap(func(next http.RoundTripper) http.RoundTripper { return once{next} })
			return config
		}
		cl, err := a.clientsWith(warnings)
		if err != nil {
			return err
		}
		all, err := run(cmd.Context(), cl, args, warnings.take)
		if err != nil {
			return err
		}
		return a.printSimulated(format, all)
	}
	outputFlag(c, &format)
	return c
}

func (a *app) simulateDelete() *cobra.Command {
	return a.simulation(&cobra.Command{
		Use: "delete KIND/NAME...", Short: "Would the objects be deleted?", Args: cobra.MinimumNArgs(1),
		Example: "  kubectl breakwater simulate delete pod/web-0\n  kubectl breakwater simulate delete namespace/shop",
	}, func(ctx context.Context, c *clients, args []string, collect func() []string) (all []simulated, err error) {
		for _, argument := range args {
			t, _, err := c.read(ctx, argument)
			if err != nil {
				return nil, err
			}
			collect()
			s, err := simulatedOf(t.String(), t.object.GetNamespace(), c.deleteDryRun(ctx, t), collect())
			if err != nil {
				return nil, err
			}
			all = append(all, s)
		}
		return all, nil
	})
}

// deleteDryRun sends the dry run of what kubectl delete sends. Without a propagation policy, the API server would orphan
// the pods of a Job, which budgets decide otherwise.
func (c *clients) deleteDryRun(ctx context.Context, t target) error {
	client := c.dynamic.Resource(t.resource)
	options := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}, PropagationPolicy: new(metav1.DeletePropagationBackground)}
	if namespace := t.object.GetNamespace(); namespace != "" {
		return client.Namespace(namespace).Delete(ctx, t.object.GetName(), options)
	}
	return client.Delete(ctx, t.object.GetName(), options)
}

func (a *app) simulateEvict() *cobra.Command {
	return a.simulation(&cobra.Command{
		Use: "evict POD...", Short: "Would the pods be evicted?", Args: cobra.MinimumNArgs(1),
	}, func(ctx context.Context, c *clients, args []string, collect func() []string) (all []simulated, err error) {
		for _, name := range args {
			s, err := c.evict(ctx, c.namespace, strings.TrimPrefix(name, "pod/"), collect)
			if err != nil {
				return nil, err
			}
			all = append(all, s)
		}
		return all, nil
	})
}

func (a *app) simulateDrain() *cobra.Command {
	return a.simulation(&cobra.Command{
		Use: "drain NODE", Short: "Which pods of the node would be evicted?", Args: cobra.ExactArgs(1),
		Long: "Which pods of the node would be evicted? Left out are pods of DaemonSets and static pods, as by kubectl drain, and pods that have ended or are terminating.",
	}, func(ctx context.Context, c *clients, args []string, collect func() []string) (all []simulated, err error) {
		node := strings.TrimPrefix(args[0], "node/")
		if _, err := c.kube.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{}); err != nil {
			return nil, fmt.Errorf("read node %s: %w", node, err)
		}
		pods, err := c.kube.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node, Limit: maxSimulated})
		if err != nil {
			return nil, fmt.Errorf("list the pods of node %s: %w", node, err)
		}
		if all, err = a.simulateEvictions(ctx, c, slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return !drained(&p) }), collect); err != nil {
			return nil, err
		}
		if pods.Continue != "" {
			_, _ = fmt.Fprintf(a.ErrOut, "The node has more than %d pods; the evictions of the others were not simulated.\n", maxSimulated)
		}
		return all, nil
	})
}

// simulateEvictions leaves out pods that were deleted since they were listed, as kubectl
// drain does.
func (a *app) simulateEvictions(ctx context.Context, c *clients, pods []corev1.Pod, collect func() []string) (all []simulated, err error) {
	progress := terminal(a.ErrOut)
	if progress != nil {
		defer func() { _, _ = fmt.Fprint(progress, "\r\x1b[K") }() // removes the progress, also before an error is printed
	}
	for i, p := range pods {
		if progress != nil {
			_, _ = fmt.Fprintf(progress, "\r%d of %d pods", i+1, len(pods))
		}
		s, err := c.evict(ctx, p.Namespace, p.Name, collect)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// drained reports whether a simulated drain evicts a pod. kubectl drain also evicts pods that have
// ended or are terminating; their eviction makes no pod unavailable.
func drained(p *corev1.Pod) bool {
	if owner := metav1.GetControllerOf(p); owner != nil && owner.Kind == "DaemonSet" {
		return false
	}
	_, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]
	return !mirror && workload.PodActive(p)
}

func (c *clients) evict(ctx context.Context, namespace, name string, collect func() []string) (simulated, error) {
	collect()
	err := c.kube.PolicyV1().Evictions(namespace).Evict(ctx, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
	})
	return simulatedOf("pod/"+name, namespace, err, collect())
}

// simulatedOf interprets the answer to a dry run. It returns an error if nothing decided about the
// request: the object does not exist (404), the token is invalid (401), the server, or a webhook
// that fails closed, could not answer (5xx), or the answer is none of the API, such as that of a limit
// of requests or of a proxy.
func simulatedOf(object, namespace string, err error, warnings []string) (simulated, error) {
	s := simulated{Object: object, Namespace: namespace, Allowed: err == nil, Warnings: list(warnings)}
	var status apierrors.APIStatus
	if err == nil {
		return s, nil
	}
	if !errors.As(err, &status) || apierrors.IsNotFound(err) || apierrors.IsUnauthorized(err) || status.Status().Code >= http.StatusInternalServerError ||
		apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return s, fmt.Errorf("simulate %s: %w", object, err)
	}
	s.Code, s.Message = status.Status().Code, err.Error()
	return s, nil
}

// outcomeText says how a request that is not admitted would end. Guards and RBAC deny with 403. Budgets and
// flow controls deny an eviction with 429, and also other requests that they cannot decide yet. Other codes
// are errors of the request, such as an invalid manifest.
func (s simulated) outcomeText() string {
	if s.Code == http.StatusForbidden || s.Code == http.StatusTooManyRequests {
		return "would be denied"
	}
	return fmt.Sprintf("would be rejected (%d)", s.Code)
}

func (a *app) printSimulated(format string, all []simulated) error {
	var notAllowed []string
	allowedPods := 0
	for _, s := range all {
		if !s.Allowed {
			notAllowed = append(notAllowed, s.Object)
		} else if strings.HasPrefix(s.Object, "pod/") {
			allowedPods++
		}
	}
	paint := a.paint()
	err := printAs(a.Out, format, map[string]any{"requests": list(all)}, notAllowed, func(w io.Writer) error {
		var b strings.Builder
		for _, s := range all {
			word := paint("would be allowed", diagnosis.StateAllowing)
			if !s.Allowed {
				word = paint(s.outcomeText(), diagnosis.StateFailed)
			}
			line := s.Object + " " + word
			if s.Namespace != "" {
				line = s.Namespace + "/" + line
			}
			if s.Message != "" {
				line += ": " + text.OneLine(s.Message)
			}
			b.WriteString(line + "\n")
			for _, warning := range s.Warnings {
				b.WriteString("  " + warning + "\n")
			}
		}
		_, err := io.WriteString(w, b.String())
		return err
	})
	if allowedPods > 1 {
		_, _ = fmt.Fprintln(a.ErrOut, "Each request was decided alone: together, later ones may be denied.")
	}
	if err == nil && len(notAllowed) > 0 {
		err = exitError{exitNo, fmt.Sprintf("%d of %d requests would be denied or rejected", len(notAllowed), len(all))}
	}
	return err
}

// once removes Retry-After from an answer of a webhook or a budget, because client-go would repeat the request up to
// 10 times. The answer of an API server that limits requests is plain text: client-go repeats such a request.
type once struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (o once) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := o.next.RoundTrip(r)
	if err == nil && answer.StatusCode == http.StatusTooManyRequests && !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/plain") {
		answer.Header.Del("Retry-After")
	}
	return answer, err
}

// warningCollector collects warnings of the API server.
type warningCollector struct{ texts []string }

var _ rest.WarningHandler = (*warningCollector)(nil)

// HandleWarningHeader implements rest.WarningHandler.
func (w *warningCollector) HandleWarningHeader(code int, _, text string) {
	if code == 299 && text != "" && !slices.Contains(w.texts, text) {
		w.texts = append(w.texts, text)
	}
}

// take returns the warnings since the last call.
func (w *warningCollector) take() []string {
	texts := w.texts
	w.texts = nil
	return texts
}
