//go:build controlplane

package change

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	judgev1alpha1 "github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// bind gives a user a ClusterRole in the namespace and returns the user's client.
func (f fixture) bind(t *testing.T, role string) (string, versioned.Interface) {
	t.Helper()
	user := f.namespace + "-" + role
	_, err := f.Kube.RbacV1().RoleBindings(f.namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return user, client
}

// may reports whether RBAC allows a request of the user in the namespace.
func (f fixture) may(ctx context.Context, user, verb, group, resource, subresource string) (bool, error) {
	review, err := f.Kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: f.namespace, Verb: verb, Group: group, Resource: resource, Subresource: subresource,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}

func TestViewEditAndAdminReadAllObjectsAndOnlyTheJudgeWritesAStatus(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	all := []string{"changeworkloads", "changepods", "releasechecks", "opsconfiginfoes"}
	for role, writes := range map[string][]string{
		"view": nil, "edit": nil, "admin": {"patch opsconfiginfoes", "bypass changeworkloads"},
		"breakwater-judge": {"patch changepods/status", "patch changeworkloads/status", "patch releasechecks"},
	} {
		user, _ := f.bind(t, role)
		allowed := map[string]bool{}
		for _, w := range writes {
			allowed[w] = true
		}
		await(t, role+" has exactly its rights", func(ctx context.Context) error {
			for _, resource := range all {
				for _, verb := range []string{"get", "list", "watch"} {
					want := role != "breakwater-judge" || resource != "opsconfiginfoes"
					if got, err := f.may(ctx, user, verb, v1alpha1.GroupName, resource, ""); err != nil || got != want {
						return fmt.Errorf("may %s %s: %t, %w", verb, resource, got, err)
					}
				}
				for _, sub := range []string{"", "status"} {
					for _, verb := range []string{"patch", "update", "bypass"} {
						what := verb + " " + resource
						if sub != "" {
							what += "/" + sub
						}
						if verb == "update" { // like patch, but the judge only patches
							what = "patch " + what[len("update "):]
							if role == "breakwater-judge" {
								continue
							}
						}
						if got, err := f.may(ctx, user, verb, v1alpha1.GroupName, resource, sub); err != nil || got != allowed[what] {
							return fmt.Errorf("may %s: %t, %w", what, got, err)
						}
					}
				}
			}
			return nil
		})
	}
}

func TestOnlyAdminWritesMetricChecks(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, role := range []string{"view", "edit", "admin"} {
		user, _ := f.bind(t, role)
		await(t, role+" reads MetricChecks, and only admin writes them", func(ctx context.Context) error {
			for verb, want := range map[string]bool{
				"get": true, "list": true, "watch": true, "create": role == "admin", "patch": role == "admin", "delete": role == "admin",
			} {
				if got, err := f.may(ctx, user, verb, judgev1alpha1.GroupName, "metricchecks", ""); err != nil || got != want {
					return fmt.Errorf("may %s: %t, %w", verb, got, err)
				}
			}
			return nil
		})
	}
}

func TestAJudgeFailsAPodAndAnEditorCannot(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create(t, workload.Deployment, builder.Deployment("web", 1, builder.Simulated))
	w.awaitPhase(t, v1alpha1.ReleaseSuccess, 1)
	batch := w.awaitBatch(t, 1)
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"podResults": []map[string]any{
		{"pod": batch.Spec.PodInfos[0].Pod, "verdict": "fail", "message": "find error"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	judge := func(ctx context.Context, c versioned.Interface) error {
		_, err := c.AppV1alpha1().ChangePods(f.namespace).Patch(ctx, batch.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
		return err
	}
	for _, role := range []string{"view", "edit", "admin"} {
		user, client := f.bind(t, role)
		await(t, role+" is bound", func(ctx context.Context) error {
			if ok, err := f.may(ctx, user, "get", v1alpha1.GroupName, "changepods", ""); err != nil || !ok {
				return fmt.Errorf("not yet: %w", err)
			}
			return nil
		})
		if err := judge(t.Context(), client); !apierrors.IsForbidden(err) {
			t.Errorf("%s judged a pod: %v", role, err)
		}
	}
	_, client := f.bind(t, "breakwater-judge")
	await(t, "the judge fails a pod", func(ctx context.Context) error { return judge(ctx, client) })
	w.awaitPhase(t, v1alpha1.ReleaseSuspend, 1)
}
