package budget

import (
	"bytes"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
	"github.com/breakwater-dev/breakwater/test/builder"
)

func ofReplicaSet(t *testing.T) *admissionv1.AdmissionRequest {
	return &admissionv1.AdmissionRequest{
		Operation: admissionv1.Delete, Namespace: "ns", Name: "web-1",
		Resource: metav1.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"},
		OldObject: builder.Raw(t, &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-1", UID: "uid-rs", OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "uid-d", Controller: new(true)}}},
			Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		}),
	}
}

func TestTheDeletionOfAnApplicationIsNoDisruption(t *testing.T) {
	ending := chains{remembered: map[string]budget.Chain{"web-1": {rs, deletedOwner}, "web": {deletedOwner}}}
	learned := chains{remembered: living.remembered, live: ending.remembered}
	for name, above := range map[string]chains{"known": ending, "read before the denial": learned} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t, above, []*v1alpha1.PodUnavailableBudget{newBudget("web", 0, nil)}, newPod(nil))
			for _, req := range []*admissionv1.AdmissionRequest{deletion(t, newPod(nil)), eviction(t, nil), ofReplicaSet(t)} {
				if a := fx.ask(t, req); !a.Response.Allowed {
					t.Errorf("%s: %s", req.Operation, a.Response.Result.Message)
				}
			}
			if a := fx.ask(t, updating(t, "", newPod(nil), newPod(func(p *corev1.Pod) { p.Spec.Containers[0].Image = "web:2" }))); a.Response.Allowed {
				t.Error("an in-place change was allowed")
			}
		})
	}
}

// A LeaderWorkerSet deletes the leader of a group in the foreground: the garbage collector then deletes the StatefulSet
// of the workers, and the leader is deleted last. Until then no other group can have its name.
func TestTheWorkersOfAGroupAreDeletedWithTheirLeader(t *testing.T) {
	workers, leader := budget.Owner{Group: "apps", Kind: "StatefulSet", Name: "web-1", UID: "uid-rs"}, budget.Owner{Kind: "Pod", Name: "web", UID: "uid-d"}
	set := budget.Owner{Group: "leaderworkerset.x-k8s.io", Kind: "LeaderWorkerSet", Name: "web", UID: "uid-lws"}
	above := func(leader budget.Owner) map[string]budget.Chain {
		return map[string]budget.Chain{"web-1": {workers, leader, set}, "web": {leader, set}}
	}
	living := above(leader)
	leader.TerminatingOrGone = true
	for name, tc := range map[string]struct {
		above   chains
		allowed bool
	}{
		"the leader runs":                          {chains{remembered: living}, false},
		"the leader terminates":                    {chains{remembered: above(leader)}, true},
		"it terminates, as read before the denial": {chains{remembered: living, live: above(leader)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t, tc.above, []*v1alpha1.PodUnavailableBudget{newBudget("web", 0, nil)}, newPod(nil))
			for _, req := range []*admissionv1.AdmissionRequest{deletionOf("apps", "statefulsets", `{"matchLabels": {"app": "web"}}`), deletion(t, newPod(nil))} {
				if a := fx.ask(t, req); a.Response.Allowed != tc.allowed {
					t.Errorf("%s: allowed: %v, want %v", req.Resource.Resource, a.Response.Allowed, tc.allowed)
				}
			}
		})
	}
}

func TestOnlyTheControllerOfJobsMayEndThePodsOfAJob(t *testing.T) {
	job := func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "web", UID: "uid-job", Controller: new(true)}}
	}
	for name, tc := range map[string]struct {
		user    string
		change  func(*corev1.Pod)
		request func(*testing.T, *corev1.Pod) *admissionv1.AdmissionRequest
		allowed bool
	}{
		"a pod of its Job":                                               {jobController, job, deletion, true},
		"a pod of a Job by a user":                                       {"alice", job, deletion, false},
		"a pod of a Job by the taint manager":                            {"system:serviceaccount:kube-system:node-controller", job, deletion, false},
		"a pod of a Job by any built-in controller":                      {"system:kube-controller-manager", job, deletion, false},
		"a pod of a Job by an account of this name in another namespace": {"system:serviceaccount:ns:job-controller", job, deletion, false},
		"a pod of a ReplicaSet":                                          {jobController, nil, deletion, false},
		"a pod without a controller":                                     {jobController, func(p *corev1.Pod) { p.OwnerReferences = nil }, deletion, false},
		"a pod with a Job as an owner that is no controller": {jobController, func(p *corev1.Pod) {
			job(p)
			p.OwnerReferences[0].Controller = nil
		}, deletion, false},
		"a pod of a Job of another group": {jobController, func(p *corev1.Pod) {
			job(p)
			p.OwnerReferences[0].APIVersion = "example.com/v1"
		}, deletion, false},
		"an update of a pod of its Job": {jobController, job, func(t *testing.T, p *corev1.Pod) *admissionv1.AdmissionRequest {
			after := p.DeepCopy()
			after.Spec.Containers[0].Image = "web:2"
			return updating(t, "", p, after)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPod(tc.change)
			fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 0, nil)}, p)
			req := tc.request(t, p)
			req.UserInfo.Username = tc.user
			if a := fx.ask(t, req); a.Response.Allowed != tc.allowed {
				t.Errorf("allowed: %v, want %v", a.Response.Allowed, tc.allowed)
			}
		})
	}
}

// deletionOf returns the request to delete a controller that has a controller itself.
func deletionOf(group, resource, selector string) *admissionv1.AdmissionRequest {
	kind := map[string]string{"replicationcontrollers": "ReplicationController"}[resource]
	return &admissionv1.AdmissionRequest{
		Operation: admissionv1.Delete, Namespace: "ns", Name: "web-1", Resource: metav1.GroupVersionResource{Group: group, Version: "v1", Resource: resource},
		OldObject: runtime.RawExtension{Raw: []byte(`{"metadata": {"namespace": "ns", "name": "web-1", "uid": "uid-rs",
 "ownerReferences": [{"apiVersion": "example.com/v1", "kind": "Game", "name": "web", "uid": "uid-d", "controller": true}]}, "spec": {"selector": ` + selector + `}, "kind": "` + kind + `"}`)},
	}
}

// After a background deletion the controllers above the pods are not known anymore.
func TestTheDeletionOfAControllerBelowAnotherIsChargedForItsPods(t *testing.T) {
	const selector = `{"matchLabels": {"app": "web"}}`
	completed := newPod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	other := newPod(func(p *corev1.Pod) { p.Name, p.UID, p.OwnerReferences[0].Name = "other", "uid-other", "other" })
	for name, req := range map[string]*admissionv1.AdmissionRequest{
		"DaemonSet":                            deletionOf("apps", "daemonsets", selector),
		"DaemonSet of OpenKruise":              deletionOf("apps.kruise.io", "daemonsets", selector),
		"Job":                                  deletionOf("batch", "jobs", selector),
		"ReplicationController":                deletionOf("", "replicationcontrollers", `{"app": "web"}`),
		"ReplicationController, unusual label": deletionOf("", "replicationcontrollers", `{"matchLabels": "web"}`),
	} {
		labeled := newPod(func(p *corev1.Pod) { p.Labels["matchLabels"] = "web" })
		if fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 0, nil)}, labeled, other); fx.ask(t, req).Decision != DecisionDenied {
			t.Errorf("%s: not denied", name)
		}
		fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 1, nil)}, labeled, other)
		if a := fx.ask(t, req); !a.Response.Allowed || len(fx.budget(t, "web").Status.DeletedPods) != 1 {
			t.Errorf("%s, with 1 allowed: %+v, charged %v", name, a, fx.budget(t, "web").Status.DeletedPods)
		}
		ended := chains{remembered: map[string]budget.Chain{"web-1": living.remembered["web-1"], "web": {deletedOwner}}}
		if a := newFixture(t, ended, []*v1alpha1.PodUnavailableBudget{newBudget("web", 0, nil)}, labeled).ask(t, req); !a.Response.Allowed {
			t.Errorf("%s, its controller is deleted: %+v", name, a)
		}
		if a := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 0, nil)}, completed).ask(t, req); !a.Response.Allowed {
			t.Errorf("%s, its pods have completed: %+v", name, a)
		}
	}
}

func TestAnOrphaningDeletionOfAReplicaSetCostsNothing(t *testing.T) {
	fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 0, nil)}, newPod(nil))
	req := ofReplicaSet(t)
	req.Options = builder.Raw(t, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationOrphan)})
	if a := fx.ask(t, req); !a.Response.Allowed {
		t.Error(a.Response.Result.Message)
	}
}

// Without a policy in the request, the API server orphans by a finalizer or by the default of the kind.
func TestADeletionWithoutAPolicyOrphansAsTheAPIServerDoes(t *testing.T) {
	const selector = `{"matchLabels": {"app": "web"}}`
	job, daemonSet := deletionOf("batch", "jobs", selector), deletionOf("apps", "daemonsets", selector)
	for name, tc := range map[string]struct {
		req                *admissionv1.AdmissionRequest
		options, finalizer string
		orphans            bool
	}{
		"a Job":                             {job, `{}`, "other", true},
		"a ReplicationController":           {deletionOf("", "replicationcontrollers", `{"app": "web"}`), `{}`, "other", true},
		"a Job of another group":            {deletionOf("batch.example.com", "jobs", selector), `{}`, "other", false},
		"a Job in the background":           {job, `{"propagationPolicy": "Background"}`, "other", false},
		"a Job without orphans":             {job, `{"orphanDependents": false}`, "other", false},
		"a Job in the foreground":           {job, `{}`, metav1.FinalizerDeleteDependents, false},
		"a Job without options":             {job, ``, "other", false},
		"a DaemonSet":                       {daemonSet, `{}`, "other", false},
		"a DaemonSet by a finalizer":        {daemonSet, `{}`, metav1.FinalizerOrphanDependents, true},
		"a DaemonSet despite the finalizer": {daemonSet, `{"propagationPolicy": "Foreground"}`, metav1.FinalizerOrphanDependents, false},
	} {
		t.Run(name, func(t *testing.T) {
			req := tc.req.DeepCopy()
			req.Options.Raw = []byte(tc.options)
			req.OldObject.Raw = bytes.Replace(req.OldObject.Raw, []byte(`{"metadata": {`), []byte(`{"metadata": {"finalizers": ["`+tc.finalizer+`"], `), 1)
			fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 0, nil)}, newPod(nil))
			if a := fx.ask(t, req); a.Response.Allowed != tc.orphans {
				t.Errorf("allowed %t: %s", a.Response.Allowed, a.Decision)
			}
		})
	}
}

// An orphaned pod is not below the target of a budget anymore, so it could be deleted without a decision.
func TestAnOrphaningDeletionIsChargedForThePodsThatLeaveATarget(t *testing.T) {
	target := func(kind, name string) func(*v1alpha1.PodUnavailableBudget) {
		return func(b *v1alpha1.PodUnavailableBudget) {
			b.Spec.Selector, b.Spec.TargetRef = nil, &v1alpha1.TargetRef{APIVersion: "apps", Kind: kind, Name: name}
		}
	}
	evictions := func(b *v1alpha1.PodUnavailableBudget) {
		target("Deployment", "web")(b)
		b.Spec.ProtectOperations = []v1alpha1.PodOperation{v1alpha1.OperationEvict}
	}
	// The pods of a ReplicaSet of a Deployment of a custom resource.
	game := budget.Owner{Group: "example.com", Kind: "Game", Name: "game", UID: "uid-g"}
	below := chains{remembered: map[string]budget.Chain{"web-1": {rs, deployment, game}, "web": {deployment, game}, "game": {game}}}
	ending := chains{remembered: map[string]budget.Chain{"web-1": {rs, deletedOwner}, "web": {deletedOwner}}}
	of := func(req *admissionv1.AdmissionRequest, policy metav1.DeletionPropagation) *admissionv1.AdmissionRequest {
		req.Options = builder.Raw(t, metav1.DeleteOptions{PropagationPolicy: &policy})
		return req
	}
	ofDeployment := func(owners []metav1.OwnerReference) *admissionv1.AdmissionRequest {
		return &admissionv1.AdmissionRequest{
			Operation: admissionv1.Delete, Namespace: "ns", Name: "web",
			Resource: metav1.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
			OldObject: builder.Raw(t, &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "uid-d", OwnerReferences: owners},
				Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
			}),
		}
	}
	ofGame := []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Game", Name: "game", UID: "uid-g", Controller: new(true)}}
	for name, tc := range map[string]struct {
		above  chains
		change func(*v1alpha1.PodUnavailableBudget)
		req    *admissionv1.AdmissionRequest
		denied bool
	}{
		"a ReplicaSet of the target":                                      {living, target("Deployment", "web"), ofReplicaSet(t), true},
		"a ReplicaSet of the target, of which only evictions are decided": {living, evictions, ofReplicaSet(t), true},
		"a ReplicaSet that is the target":                                 {living, target("ReplicaSet", "web-1"), ofReplicaSet(t), true},
		"a ReplicaSet of another target":                                  {living, target("Deployment", "other"), ofReplicaSet(t), false},
		"a ReplicaSet of a deleted target":                                {ending, target("Deployment", "web"), ofReplicaSet(t), false},
		"a Deployment that is the target, below another one":              {below, target("Deployment", "web"), ofDeployment(ofGame), true},
		"a Deployment above the target":                                   {below, target("ReplicaSet", "web-1"), ofDeployment(ofGame), false},
		"the topmost controller":                                          {living, target("Deployment", "web"), ofDeployment(nil), false},
	} {
		t.Run(name, func(t *testing.T) {
			req := of(tc.req, metav1.DeletePropagationOrphan)
			fx := newFixture(t, tc.above, []*v1alpha1.PodUnavailableBudget{newBudget("web", 0, tc.change)}, newPod(nil))
			if a := fx.ask(t, req); a.Response.Allowed == tc.denied {
				t.Errorf("with 0 allowed: %+v", a)
			}
			room := newFixture(t, tc.above, []*v1alpha1.PodUnavailableBudget{newBudget("web", 1, tc.change)}, newPod(nil))
			if a := room.ask(t, req); !a.Response.Allowed || (len(room.budget(t, "web").Status.DeletedPods) == 1) != tc.denied {
				t.Errorf("with 1 allowed: %+v, charged %v", a, room.budget(t, "web").Status.DeletedPods)
			}
		})
	}
}

// One read for each pod would take longer than the time for a refund, and a list without pages would exceed the memory
// of the webhook.
func TestARefundForManyPodsReadsThemOnceInPages(t *testing.T) {
	const pods = 50
	fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("a", pods, nil), newBudget("b", pods, nil)}, podsOf(pods, nil)...)
	fx.useUp(t, "b")
	if a := fx.ask(t, ofReplicaSet(t)); a.Response.Allowed {
		t.Fatalf("allowed: %s", a.Decision)
	}
	fx.untilRefunded(t, "a")
	reads := 0
	for _, a := range fx.kube.Actions() {
		if a.GetResource().Resource != "pods" {
			continue
		}
		reads++
		if list, ok := a.(clienttesting.ListActionImpl); !ok || list.ListOptions.Limit == 0 {
			t.Errorf("%v is no list with a limit", a)
		}
	}
	if reads != 2 {
		t.Errorf("%d reads, want one for the request and one for the refund", reads)
	}
}

func TestTheDeletionOfAControllerWithTooManyPodsIsNotDecided(t *testing.T) {
	large := podsOf(9, func(p *corev1.Pod) { p.Labels["large"] = strings.Repeat("x", 1<<20) })
	fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 100, nil)}, large...)
	a := fx.ask(t, ofReplicaSet(t))
	if !admission.Undecided(a.Response) {
		t.Fatal(a.Decision)
	}
	if got, want := a.Response.Result.Message, "list pods of namespace ns: the first 8 of them have more than 8 MiB, the limit"; !strings.Contains(got, want) {
		t.Error(got)
	}
}
