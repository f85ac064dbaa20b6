package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/cli/diagnosis"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
	"github.com/breakwater-dev/breakwater/internal/text"
)

func (a *app) doctorCommand() *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check the installation of Breakwater",
		Long: `Check the installation of Breakwater: CRDs, webhooks, components, Broker, functions and their Triggers, settings,
keys of your own judges and open findings of the self-check. It reads cluster-wide objects. Exit code 1: a check failed.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.clients()
			if err != nil {
				return err
			}
			in, err := c.installation(cmd.Context())
			if err != nil {
				return err
			}
			server, err := c.kube.Discovery().ServerVersion()
			if err != nil {
				return fmt.Errorf("read the version of the API server: %w", err)
			}
			checks := append([]diagnosis.Check{{Name: "versions", Result: diagnosis.ResultInfo, Message: "plugin " + a.version + ", Kubernetes " + server.GitVersion}},
				diagnosis.Examine(in)...)
			return a.printChecks(format, checks)
		},
	}
	outputFlag(c, &format)
	return c
}

func (a *app) printChecks(format string, checks []diagnosis.Check) error {
	paint := a.paint()
	states := map[diagnosis.Result]diagnosis.State{diagnosis.ResultOK: diagnosis.StatePassed, diagnosis.ResultFail: diagnosis.StateFailed}
	var failed []string
	for _, c := range checks {
		if c.Result == diagnosis.ResultFail {
			failed = append(failed, c.Name)
		}
	}
	err := printAs(a.Out, format, map[string]any{"checks": list(checks)}, failed, func(w io.Writer) error {
		var b strings.Builder
		for _, c := range checks {
			b.WriteString(paint(fmt.Sprintf("%-4s", c.Result), states[c.Result]) + " " + c.Name + ": " + text.OneLine(c.Message) + "\n")
			if c.Fix != "" {
				b.WriteString("     fix: " + c.Fix + "\n")
			}
		}
		_, err := io.WriteString(w, b.String())
		return err
	})
	if err == nil && len(failed) > 0 {
		err = exitError{exitNo, fmt.Sprintf("%d checks failed: %s", len(failed), strings.Join(failed, ", "))}
	}
	return err
}

// installation gathers the objects of Breakwater in the cluster.
func (c *clients) installation(ctx context.Context) (diagnosis.Installation, error) {
	in := diagnosis.Installation{Configurations: map[string]bool{}, Deployments: map[string]diagnosis.Deployment{}, ReadyConditions: map[string]diagnosis.Condition{}, Flags: c.flags, Now: time.Now()}
	for _, gather := range []func(context.Context, *diagnosis.Installation) error{c.webhooks, c.crds, c.deployments, c.readiness, c.selfCheckEvents, c.addresses, c.judges} {
		if err := gather(ctx, &in); err != nil {
			return in, err
		}
	}
	return in, nil
}

// addresses gathers those of the AlterShield server and of the permission centre.
func (c *clients) addresses(ctx context.Context, in *diagnosis.Installation) error {
	for _, s := range []struct {
		configMap, key string
		value          *string
	}{{altershield.ConfigMapName, "base-url", &in.Server}, {"config-permission", "centre-url", &in.Centre}} {
		config, err := c.kube.CoreV1().ConfigMaps(v1alpha1.SystemNamespace).Get(ctx, s.configMap, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("read ConfigMap %s: %w", s.configMap, err)
		}
		*s.value = config.Data[s.key]
		if s.configMap == altershield.ConfigMapName {
			in.ServerInvalid = altershield.CheckConfigMap(config)
		}
	}
	return nil
}

// judges gathers why verdicts of the judges in the setting judges are rejected.
func (c *clients) judges(ctx context.Context, in *diagnosis.Installation) error {
	s, err := c.settings(ctx)
	if apierrors.IsNotFound(err) {
		return nil // part change is not installed
	} else if err != nil {
		return err
	}
	own := v1alpha1.OwnJudges(s.Judges)
	if len(own) == 0 {
		return nil
	}
	secret, err := c.kube.CoreV1().Secrets(v1alpha1.SystemNamespace).Get(ctx, eventsigning.ExternalJudgesSecretName, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		in.JudgesUnknown = fmt.Errorf("read the keys of judges %s: %w", strings.Join(own, ", "), err)
		return nil
	}
	for _, judge := range own {
		if err := eventsigning.CheckJudgeKeys(secret.Data, judge); err != nil {
			in.JudgesRejected = append(in.JudgesRejected, err.Error())
		}
	}
	return nil
}

func (c *clients) webhooks(ctx context.Context, in *diagnosis.Installation) error {
	// A validating and a mutating configuration may have the same name. A configuration
	// without a webhook is complete: the webhooks of flow control exist only while a
	// flow control does.
	record := func(name string, bundles [][]byte) {
		trusted, known := in.Configurations[name]
		complete := !slices.ContainsFunc(bundles, func(b []byte) bool { return len(b) == 0 })
		in.Configurations[name] = complete && (trusted || !known)
	}
	validating, err := c.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the webhooks: %w", err)
	}
	in.Validating = validating.Items
	for _, v := range validating.Items {
		var bundles [][]byte
		for _, w := range v.Webhooks {
			bundles = append(bundles, w.ClientConfig.CABundle)
		}
		record(v.Name, bundles)
	}
	mutating, err := c.kube.AdmissionregistrationV1().MutatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the webhooks: %w", err)
	}
	for _, m := range mutating.Items {
		var bundles [][]byte
		for _, w := range m.Webhooks {
			bundles = append(bundles, w.ClientConfig.CABundle)
		}
		record(m.Name, bundles)
	}
	return nil
}

func (c *clients) crds(ctx context.Context, in *diagnosis.Installation) error {
	list, err := c.dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}).
		List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the CRDs: %w", err)
	}
	for i := range list.Items {
		if conditionOf(&list.Items[i], "Established").True {
			in.CRDs = append(in.CRDs, list.Items[i].GetName())
		}
	}
	return nil
}

func (c *clients) deployments(ctx context.Context, in *diagnosis.Installation) error {
	list, err := c.kube.AppsV1().Deployments(v1alpha1.SystemNamespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/part-of=breakwater"})
	if err != nil {
		return fmt.Errorf("list the Deployments: %w", err)
	}
	for _, d := range list.Items {
		in.Deployments[d.Name] = deploymentOf(&d)
	}
	return nil
}

func deploymentOf(d *appsv1.Deployment) diagnosis.Deployment {
	deployment := diagnosis.Deployment{Wanted: 1, Available: d.Status.AvailableReplicas, Image: d.Spec.Template.Spec.Containers[0].Image}
	if d.Spec.Replicas != nil {
		deployment.Wanted = *d.Spec.Replicas
	}
	return deployment
}

// readiness gathers the condition Ready of the Broker, its Triggers, the functions and
// the settings, and the subscribers of the Triggers. A kind that the cluster does not have has no objects.
func (c *clients) readiness(ctx context.Context, in *diagnosis.Installation) error {
	for _, resource := range []string{"brokers.eventing.knative.dev", "triggers.eventing.knative.dev", "services.serving.knative.dev", "opsconfiginfoes." + v1alpha1.GroupName} {
		found, err := c.mapper.ResourceFor(schema.ParseGroupResource(resource).WithVersion(""))
		if meta.IsNoMatchError(err) {
			continue
		} else if err != nil {
			return fmt.Errorf("look up %s: %w", resource, err)
		}
		list, err := c.dynamic.Resource(found).Namespace(v1alpha1.SystemNamespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("list %s: %w", resource, err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			in.Broker = in.Broker || o.GetKind() == "Broker"
			in.ReadyConditions[strings.ToLower(o.GetKind())+"/"+o.GetName()] = conditionOf(o, "Ready")
			if function := subscriberOf(o); function != "" {
				in.Subscribers = append(in.Subscribers, function)
			}
		}
	}
	return nil
}

// subscriberOf returns the name of the function of Breakwater to which a Trigger sends events; "" if there is none.
func subscriberOf(o *unstructured.Unstructured) string {
	ref, _, _ := unstructured.NestedStringMap(o.Object, "spec", "subscriber", "ref") // none if malformed
	if namespace := cmp.Or(ref["namespace"], v1alpha1.SystemNamespace); o.GetKind() != "Trigger" || namespace != v1alpha1.SystemNamespace {
		return ""
	}
	return ref["name"]
}

func (c *clients) selfCheckEvents(ctx context.Context, in *diagnosis.Installation) error {
	list, err := c.kube.CoreV1().Events(v1alpha1.SystemNamespace).List(ctx, metav1.ListOptions{FieldSelector: diagnosis.SelfCheckEvents})
	if err != nil {
		return fmt.Errorf("list the Events of the self-check: %w", err)
	}
	in.SelfCheck = list.Items
	slices.SortFunc(in.SelfCheck, func(a, b corev1.Event) int {
		return cmp.Or(a.LastTimestamp.Compare(b.LastTimestamp.Time), cmp.Compare(a.ResourceVersion, b.ResourceVersion))
	})
	return nil
}

// conditionOf returns a condition of an object.
func conditionOf(o *unstructured.Unstructured, name string) diagnosis.Condition {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions") // none if malformed
	for _, c := range conditions {
		fields, _ := c.(map[string]any)
		if fields["type"] == name {
			reason, _ := fields["reason"].(string)
			message, _ := fields["message"].(string)
			return diagnosis.Condition{True: fields["status"] == "True", Reason: reason, Message: message}
		}
	}
	return diagnosis.Condition{Reason: "NoCondition"}
}
