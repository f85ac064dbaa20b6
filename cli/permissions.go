package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"

	"github.com/breakwater-dev/breakwater/cli/diagnosis"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

// permission is the state of a pod's permissions. Status is that of the condition, Unknown without
// one.
type permission struct {
	Namespace string      `json:"namespace"`
	Pod       string      `json:"pod"`
	Status    string      `json:"status"`
	Reason    string      `json:"reason"`
	Message   string      `json:"message,omitempty"`
	Since     metav1.Time `json:"since"`
}

func (a *app) permissionsCommand() *cobra.Command {
	var format string
	var all bool
	c := &cobra.Command{
		Use:   "permissions",
		Short: "List the pods that need permissions, and what they wait for",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, namespace, err := a.listClients(all)
			if err != nil {
				return err
			}
			var found []permission
			states := map[string]diagnosis.State{}
			err = pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return c.kube.CoreV1().Pods(namespace).List(ctx, o)
			}).EachListItem(cmd.Context(), metav1.ListOptions{}, func(o runtime.Object) error {
				p := o.(*corev1.Pod)
				if state, ok := permissionOf(p); ok {
					states[p.Namespace+"/"+p.Name] = diagnosis.ExplainPod(p).State
					found = append(found, state)
				}
				return nil
			})
			if err != nil {
				return c.listError("pods", "permission", namespace, err)
			}
			return a.printPermissions(format, found, states)
		},
	}
	outputFlag(c, &format)
	c.Flags().BoolVarP(&all, "all-namespaces", "A", false, "List the pods of all namespaces")
	return c
}

// permissionOf returns the state of a pod's permissions; false if the pod needs none.
func permissionOf(p *corev1.Pod) (permission, bool) {
	condition := podmeta.Condition(p, podmeta.ConditionInjected)
	if condition == nil || condition.Status != corev1.ConditionFalse {
		condition = podmeta.Condition(p, podmeta.ConditionAuthorized)
	}
	if condition != nil {
		return permission{p.Namespace, p.Name, string(condition.Status), condition.Reason, condition.Message, condition.LastTransitionTime}, true
	}
	e := diagnosis.ExplainPod(p)
	return permission{p.Namespace, p.Name, string(corev1.ConditionUnknown), e.Reason, e.Why[0], p.CreationTimestamp}, e.Reason == diagnosis.ReasonNotReported
}

func (a *app) printPermissions(format string, found []permission, states map[string]diagnosis.State) error {
	var names []string
	var rows [][]string
	now, paint := time.Now(), a.paint()
	for _, p := range found {
		names = append(names, "pod/"+p.Pod)
		rows = append(rows, []string{p.Namespace, p.Pod, paint(p.Reason, states[p.Namespace+"/"+p.Pod]), age(p.Since.Time, now), p.Message})
	}
	return printAs(a.Out, format, map[string]any{"pods": list(found)}, names, func(w io.Writer) error {
		if len(rows) == 0 {
			_, err := fmt.Fprintln(a.ErrOut, "No pod needs permissions.")
			return err
		}
		return table(w, []string{"NAMESPACE", "POD", "REASON", "SINCE", "MESSAGE"}, rows)
	})
}
