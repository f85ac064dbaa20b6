package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/cli/diagnosis"
)

// verdict is a verdict that a person gives.
type verdict struct {
	// command is approve or reject, value pass or fail.
	command, value, message string
	pods                    []string
	order                   bool
}

func (a *app) approveCommand() *cobra.Command {
	return a.verdictCommand(verdict{command: "approve", value: "pass"}, "Pass pods of the current release by hand; overrides all other judges", "checked the dashboards")
}

func (a *app) rejectCommand() *cobra.Command {
	return a.verdictCommand(verdict{command: "reject", value: "fail"}, "Fail pods of the current release by hand; overrides all other judges", "5 % of requests fail")
}

func (a *app) verdictCommand(v verdict, short, reason string) *cobra.Command {
	c := &cobra.Command{
		Use:     v.command + " KIND/NAME -m REASON",
		Aliases: []string{v.value},
		Short:   short,
		Long: short + `.

A pass is for all pods that have not passed, a fail for all pods, unless --pod names some.
KIND/NAME is the workload or its current release, or a batch (changepod/NAME), whose pods alone are judged.
--order gives the verdict of the order check instead; pods keep their own verdicts.
It needs the roles breakwater-judge and view.`,
		Example: "  kubectl breakwater " + v.command + " deployment/web -m '" + reason + "'",
		Args:    oneArgument(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(v.message) == "" {
				return errors.New("the reason is missing: write -m REASON, so that others know why the verdict was given")
			}
			if v.order && len(v.pods) > 0 {
				return errors.New("--order is for the order check and --pod for single pods: use one of them")
			}
			c, err := a.clients()
			if err != nil {
				return err
			}
			return a.writeVerdict(cmd.Context(), c, args[0], v)
		},
	}
	c.Flags().StringVarP(&v.message, "message", "m", "", "Reason of the verdict, which is stored with it (required)")
	c.Flags().StringSliceVar(&v.pods, "pod", nil, "Name of a pod to judge; repeat it for several")
	c.Flags().BoolVar(&v.order, "order", false, "Give the verdict of the order check (status.orderResult), not of pods")
	return c
}

func (a *app) writeVerdict(ctx context.Context, c *clients, argument string, v verdict) error {
	write := func() error {
		named, t, in, err := c.currentInputOf(ctx, argument, v.command, " -m REASON")
		if err != nil {
			return err
		}
		release := in.CurrentChangeWorkload()
		if release == nil {
			return fmt.Errorf("%s has no release to judge: `%s` says why", t, c.command("explain", t.String(), in.Namespace))
		}
		batches := in.BatchesOf(release)
		if uid := named.object.GetUID(); uid != t.object.GetUID() && uid != release.UID {
			batches = slices.DeleteFunc(batches, func(b v1alpha1.ChangePod) bool { return b.UID != uid })
			if v.order {
				return fmt.Errorf("--order is for the order of the whole release: name %s, and not a batch", t)
			}
		}
		if v.order {
			err = c.writeOrderVerdict(ctx, release, v)
		} else {
			err = a.writePodVerdicts(ctx, c, named, batches, v, c.command("tree", t.String(), in.Namespace))
		}
		switch {
		case apierrors.IsForbidden(err):
			return c.withRole(err, in.Namespace, "breakwater-judge")
		case err != nil:
			return fmt.Errorf("the verdict was not written: %w", err)
		case v.order:
			_, err = fmt.Fprintf(a.Out, "%s: %s\n", release.Name, v.value)
		}
		return err
	}
	if v.order {
		return retry.RetryOnConflict(retry.DefaultRetry, write)
	}
	return write()
}

func (c *clients) writeOrderVerdict(ctx context.Context, release *v1alpha1.ChangeWorkload, v verdict) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": release.ResourceVersion},
		"status":   map[string]any{"orderResult": v1alpha1.OrderResult{Verdict: v.value, Message: v.message}},
	})
	if err != nil {
		return err
	}
	_, err = c.breakwater.AppV1alpha1().ChangeWorkloads(release.Namespace).Patch(ctx, release.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// writePodVerdicts writes the verdicts of pods. tree is the command that shows the pods of each batch.
func (a *app) writePodVerdicts(ctx context.Context, c *clients, named target, batches []v1alpha1.ChangePod, v verdict, tree string) error {
	names := make([]string, len(v.pods))
	for i, pod := range v.pods {
		names[i] = strings.TrimPrefix(pod, "pod/") // kubectl get -o name prints it
	}
	verdicts, err := diagnosis.VerdictsOfPerson(batches, v.value, v.message, names, tree)
	if err != nil {
		return err
	}
	if len(verdicts) == 0 {
		return fmt.Errorf("no pod of %s is to be judged: all passed, or none is in a batch yet", named)
	}
	for _, j := range verdicts {
		if err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
			err := c.writeResults(ctx, j)
			if !apierrors.IsConflict(err) {
				return err
			}
			b, readErr := c.breakwater.AppV1alpha1().ChangePods(j.Batch.Namespace).Get(ctx, j.Batch.Name, metav1.GetOptions{})
			if readErr != nil {
				return readErr
			}
			if b.UID == j.Batch.UID { // else it is of a later attempt
				j = diagnosis.VerdictOfPerson(b, v.value, v.message, names)
			}
			return err
		}); err != nil {
			return err
		}
		for _, pod := range j.Pods {
			if _, err := fmt.Fprintf(a.Out, "pod/%s: %s\n", pod, v.value); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeResults writes the podResults of a verdict, unless another writer changed the batch since.
func (c *clients) writeResults(ctx context.Context, j diagnosis.PersonVerdict) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": j.Batch.ResourceVersion},
		"status":   map[string]any{"podResults": j.Results},
	})
	if err != nil {
		return err
	}
	_, err = c.breakwater.AppV1alpha1().ChangePods(j.Batch.Namespace).Patch(ctx, j.Batch.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}
