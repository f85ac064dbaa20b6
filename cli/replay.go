package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/cli/diagnosis"
	"github.com/breakwater-dev/breakwater/events/replay"
	"github.com/breakwater-dev/breakwater/internal/text"
)

func (a *app) replayCommand() *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "replay NAME... | --all",
		Short: "Send again the reports that could not be delivered",
		Long: `Send again the reports that could not be delivered: of finished pods and of states of releases.

NAME is a name that deadletters prints with REPLAY Possible. The command writes a request on the workload of the report, so
it needs the right to patch this workload. The controller then sends the event that it signed, as it was
stored. All receivers of the event get it; its id is the same, so the server records it once.
Wake-ups and verdicts need no replay, because the controller or their judge sends them again.`,
		Example: "  kubectl breakwater deadletters replay web.3f2a9c01d4e5b678\n  kubectl breakwater deadletters replay --all",
		RunE: func(cmd *cobra.Command, names []string) error {
			if all == (len(names) > 0) {
				return errors.New("write the names of dead letters, or --all for those of the namespace that can be replayed")
			}
			c, err := a.clients()
			if err != nil {
				return err
			}
			return a.replay(cmd.Context(), c, names)
		},
	}
	c.Flags().BoolVar(&all, "all", false, "Replay all reports of the namespace that were not replayed")
	return c
}

// replay requests the replay of the named dead letters; of all, if there are no names.
func (a *app) replay(ctx context.Context, c *clients, names []string) error {
	letters, events, err := c.deadLetters(ctx, c.namespace)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		if names = diagnosis.Replayable(letters); len(names) == 0 {
			_, err := fmt.Fprintln(a.ErrOut, "No report to replay.")
			return err
		}
	}
	requests := map[string][]string{}
	var failed error
	for _, name := range names {
		l, err := diagnosis.CheckReplay(letters, name, c.command("deadletters", "", c.namespace))
		if err == nil && l.Replay == diagnosis.Replayed {
			_, err = fmt.Fprintf(a.Out, "%s: %s\n", name, text.OneLine(l.Explanation))
		} else if err == nil {
			var workload string
			if workload, err = c.workloadOf(ctx, events[name]); err == nil {
				requests[workload] = append(requests[workload], name)
			}
		}
		failed = errors.Join(failed, err)
	}
	return errors.Join(failed, a.requestReplays(ctx, c, requests))
}

// workloadOf returns the workload of the stored event of a dead letter, as an argument of commands. The object of the
// Kubernetes Event may be a release that does not exist any more: the release of a suspended version is deleted when a
// repair succeeds.
func (c *clients) workloadOf(ctx context.Context, e corev1.Event) (string, error) {
	if _, subject, err := replay.Decode(e.Annotations[v1alpha1.CloudEventAnnotation]); err == nil {
		of := schema.FromAPIVersionAndKind(subject.Workload.APIVersion, subject.Workload.Kind)
		return kindOf(of).Argument() + "/" + subject.Workload.Name, nil
	}
	// The controller says in its Event why it does not send an event that cannot be decoded.
	t, err := c.workload(ctx, kindOf(e.InvolvedObject.GroupVersionKind()).Argument()+"/"+e.InvolvedObject.Name)
	if err != nil {
		return "", err
	}
	return t.String(), nil
}

// requestReplays writes the requests, by workload. One that fails does not prevent the others.
func (a *app) requestReplays(ctx context.Context, c *clients, requests map[string][]string) error {
	var failed error
	for _, workload := range slices.Sorted(maps.Keys(requests)) {
		// The controller executes a part at a time, and removes its request.
		names := requests[workload]
		left := len(names) - v1alpha1.MaxReplays
		if left > 0 {
			names = names[:v1alpha1.MaxReplays]
		}
		if err := c.requestReplay(ctx, workload, names); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		for _, name := range names {
			if _, err := fmt.Fprintf(a.Out, "%s: replay requested\n", name); err != nil {
				return err
			}
		}
		if left > 0 {
			if _, err := fmt.Fprintf(a.ErrOut, "%s: %d more can be replayed; repeat the command when these are replayed\n", workload, left); err != nil {
				return err
			}
		}
	}
	return failed
}

// requestReplay writes the request on a workload, which must not have another one.
func (c *clients) requestReplay(ctx context.Context, workload string, names []string) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		t, err := c.workload(ctx, workload)
		if err != nil {
			return err
		}
		if t.object.GetAnnotations()[v1alpha1.ReplayRequestAnnotation] != "" {
			return fmt.Errorf("%s has another replay request, which the controller has not executed yet: is the Broker Ready, and the namespace opted in?", t)
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"resourceVersion": t.object.GetResourceVersion(),
			"annotations":     map[string]string{v1alpha1.ReplayRequestAnnotation: strings.Join(names, ",")},
		}})
		if err != nil {
			return err
		}
		_, err = c.dynamic.Resource(t.resource).Namespace(t.object.GetNamespace()).Patch(ctx, t.object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("no replay was requested on %s: %w", t, err)
		}
		return nil
	})
}
