package diagnosis_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/breakwater-dev/breakwater/cli/diagnosis"
	"github.com/breakwater-dev/breakwater/internal/eventrecorder"
	"github.com/breakwater-dev/breakwater/reconciler/selfcheck"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// complete is an installation of all parts without a fault.
func complete() diagnosis.Installation {
	in := diagnosis.Installation{
		Configurations: map[string]bool{}, Deployments: map[string]diagnosis.Deployment{}, Broker: true,
		ReadyConditions: map[string]diagnosis.Condition{"broker/default": {True: true}}, Server: "http://altershield",
	}
	for _, n := range []string{"submit", "verdict", "report", "judge", "notify", "deadletter", "callback"} {
		in.ReadyConditions["service/"+n] = diagnosis.Condition{True: true}
	}
	in.Subscribers = []string{"submit", "verdict", "judge", "notify"}
	for _, p := range diagnosis.Parts() {
		for _, n := range p.Configurations {
			in.Configurations[n] = true
		}
		in.CRDs = append(in.CRDs, p.CRDs...)
		for _, n := range p.Deployments {
			in.Deployments[n] = diagnosis.Deployment{Wanted: 2, Available: 2, Image: n + ":v1"}
		}
	}
	return in
}

func TestDoctorKnowsTheEventsOfTheSelfCheck(t *testing.T) {
	if want := "involvedObject.kind=Deployment,source=" + eventrecorder.Breakwater; diagnosis.SelfCheckEvents != want {
		t.Errorf("the field selector is %s, want %s", diagnosis.SelfCheckEvents, want)
	}
	for _, reason := range []string{selfcheck.ReasonGuardEnforced, selfcheck.ReasonFindingEnded} {
		in := complete()
		in.SelfCheck = []corev1.Event{{Reason: "CABundleStale", Message: "breakwater: expired"}, {Reason: reason, Message: "breakwater: no longer CABundleStale"}}
		if got := selfCheckOf(in); got.Result != diagnosis.ResultInfo {
			t.Errorf("after %s: %+v", reason, got)
		}
	}
}

// A finding that ended during a change of leader has no end Event, and an end Event can be lost. The Event of an open
// finding is repeated.
func TestDoctorIgnoresFindingsThatAreNotRepeated(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for since, want := range map[time.Duration]diagnosis.Result{
		eventrecorder.RepeatAfter + time.Minute: diagnosis.ResultFail, eventrecorder.RepeatAfter + 6*time.Minute: diagnosis.ResultInfo,
	} {
		in := complete()
		in.Now = now
		in.SelfCheck = []corev1.Event{{Reason: "CABundleStale", Message: "breakwater: expired", LastTimestamp: metav1.NewTime(now.Add(-since))}}
		if got := selfCheckOf(in); got.Result != want {
			t.Errorf("%s after the last Event: %+v, want %s", since, got, want)
		}
	}
}

func selfCheckOf(in diagnosis.Installation) diagnosis.Check {
	all := diagnosis.Examine(in)
	return all[len(all)-1]
}

// The Event of an older finding is deleted after an hour, so its absence does not mean that all guards are
// enforced.
func TestDoctorDoesNotReportOldFindingsAsEnforcedGuards(t *testing.T) {
	none, ended := complete(), complete()
	ended.SelfCheck = []corev1.Event{{Reason: "CABundleStale", Message: "breakwater: expired"}, {Reason: "GuardEnforced", Message: "breakwater: no longer CABundleStale"}}
	for _, c := range slices.Concat(diagnosis.Examine(none), diagnosis.Examine(ended)) {
		if c.Name == "self-check" && (c.Result != diagnosis.ResultInfo || !strings.HasPrefix(c.Message, "no Event of the last 35 minutes shows an open finding; ")) {
			t.Errorf("self-check is %s: %s", c.Result, c.Message)
		}
	}
}

func isJudge(name string) bool { return name == "judge" }

// objectsOf returns the objects of a folder of config.
func objectsOf(t *testing.T, folder string) (all []*unstructured.Unstructured) {
	t.Helper()
	files, err := filepath.Glob("../../config/" + folder + "/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("config/%s: %d files, %v", folder, len(files), err)
	}
	for _, file := range files {
		for _, o := range builder.Manifests[unstructured.Unstructured](t, file) {
			all = append(all, &o)
		}
	}
	return all
}

func TestDoctorKnowsTheFunctionsThatHaveATrigger(t *testing.T) {
	in, subscribers := complete(), 0
	in.Subscribers = nil
	for _, folder := range []string{"core", "judge", "notify"} {
		for _, o := range objectsOf(t, folder) {
			if o.GetKind() != "Trigger" {
				continue
			}
			name, _, _ := unstructured.NestedString(o.Object, "spec", "subscriber", "ref", "name")
			if name == "report" { // 620-report.yaml: its Trigger may be deleted
				continue
			}
			if message := failures(in)["change: Broker, functions and settings"]; !strings.Contains(message, "service/"+name+" is the subscriber of no Trigger") {
				t.Errorf("the Trigger of %s: got %q", name, message)
			}
			subscribers++
		}
	}
	if subscribers != 4 {
		t.Errorf("config has %d Triggers besides that of report", subscribers)
	}
}

func TestDoctorKnowsTheFunctionsOfPartChange(t *testing.T) {
	functions := 0
	for _, o := range objectsOf(t, "core") {
		if name := o.GetName(); o.GetAPIVersion() == "serving.knative.dev/v1" && name != "report" { // who wants no reports may delete it
			in := complete()
			delete(in.ReadyConditions, "service/"+name)
			if message := failures(in)["change: Broker, functions and settings"]; !strings.Contains(message, "service/"+name+" is missing") {
				t.Errorf("function %s is missing: got %q", name, message)
			}
			functions++
		}
	}
	if functions != 4 {
		t.Errorf("config/core has %d functions besides report", functions)
	}
}

// failures returns the messages of the checks that fail, by their names.
func failures(in diagnosis.Installation) map[string]string {
	messages := map[string]string{}
	for _, c := range diagnosis.Examine(in) {
		if c.Result == diagnosis.ResultFail {
			messages[c.Name] = c.Message
		}
	}
	return messages
}

func TestDoctorNamesEachFaultAndItsFix(t *testing.T) {
	for name, tc := range map[string]struct {
		damage func(*diagnosis.Installation)
		// failed are the names of the failed checks, and what their messages contain.
		failed map[string]string
	}{
		"no fault":                     {func(*diagnosis.Installation) {}, nil},
		"a CRD is missing":             {func(in *diagnosis.Installation) { in.CRDs = in.CRDs[1:] }, map[string]string{"change: CRDs": "changeworkloads.app.ops.cloud.alipay.com"}},
		"a webhook has no caBundle":    {func(in *diagnosis.Installation) { in.Configurations["breakwater-protection"] = false }, map[string]string{"protection: webhooks": "no caBundle"}},
		"a configuration is missing":   {func(in *diagnosis.Installation) { delete(in.Configurations, "breakwater-deletionflow") }, map[string]string{"protection: webhooks": "breakwater-deletionflow is missing"}},
		"a component is not available": {func(in *diagnosis.Installation) { in.Deployments["webhook"] = diagnosis.Deployment{Wanted: 2} }, map[string]string{"change: components": "webhook has 0 of 2"}},
		"service openapi is missing":   {func(in *diagnosis.Installation) { delete(in.Deployments, "openapi") }, map[string]string{"change: components": "openapi is missing"}},
		"a component is missing":       {func(in *diagnosis.Installation) { delete(in.Deployments, "permission-centre") }, map[string]string{"permission: components": "permission-centre is missing"}},
		"the centre is outside of the cluster": {func(in *diagnosis.Installation) {
			delete(in.Deployments, "permission-centre")
			in.Centre = "https://centre.example.com"
		}, nil},
		"another component is missing, and the centre is outside of the cluster": {func(in *diagnosis.Installation) {
			delete(in.Deployments, "init-action-server")
			in.Centre = "https://centre.example.com"
		}, map[string]string{"permission: components": "init-action-server is missing"}},
		"the centre of this cluster is missing": {func(in *diagnosis.Installation) {
			delete(in.Deployments, "permission-centre")
			in.Centre = "https://permission-centre.altershieldoperator-system.svc.cluster.local"
		}, map[string]string{"permission: components": "permission-centre is missing"}},
		"the centre of this cluster is missing, and its address is short": {func(in *diagnosis.Installation) {
			delete(in.Deployments, "permission-centre")
			in.Centre = "https://permission-centre.altershieldoperator-system.svc:443"
		}, map[string]string{"permission: components": "permission-centre is missing"}},
		"the centre is outside of the cluster, and its Deployment is not available": {func(in *diagnosis.Installation) {
			in.Deployments["permission-centre"] = diagnosis.Deployment{Wanted: 1}
			in.Centre = "https://centre.example.com"
		}, map[string]string{"permission: components": "permission-centre has 0 of 1"}},
		"a function is not Ready": {func(in *diagnosis.Installation) {
			in.ReadyConditions["service/submit"] = diagnosis.Condition{Reason: "RevisionFailed"}
		}, map[string]string{"change: Broker, functions and settings": "service/submit is not Ready: RevisionFailed"}},
		"a function has no Trigger": {func(in *diagnosis.Installation) { in.Subscribers = slices.DeleteFunc(in.Subscribers, isJudge) },
			map[string]string{"change: Broker, functions and settings": "service/judge is the subscriber of no Trigger: apply its part again"}},
		"a function of part change is missing": {func(in *diagnosis.Installation) { delete(in.ReadyConditions, "service/callback") },
			map[string]string{"change: Broker, functions and settings": "service/callback is missing"}},
		"a function of another part is not installed": {func(in *diagnosis.Installation) {
			in.Subscribers = slices.DeleteFunc(in.Subscribers, isJudge)
			delete(in.ReadyConditions, "service/judge")
		}, nil},
		"there is no Broker": {func(in *diagnosis.Installation) { in.Broker = false }, map[string]string{"change: Broker, functions and settings": "no Broker"}},
		"the settings of the server are invalid": {func(in *diagnosis.Installation) {
			in.ServerInvalid = errors.New("config-altershield base_url: unknown")
		},
			map[string]string{"change: AlterShield server": "config-altershield base_url: unknown"}},
		"a judge has no key": {func(in *diagnosis.Installation) {
			in.JudgesRejected = []string{`key "metricks" is missing in Secret external-judge-keys`}
		},
			map[string]string{"change: judges": `stay unjudged: key "metricks" is missing in Secret external-judge-keys`}},
		"no right to read the keys of judges is no fault": {func(in *diagnosis.Installation) { in.JudgesUnknown = errors.New("forbidden") }, nil},
		"no server is no fault":                           {func(in *diagnosis.Installation) { in.Server = "" }, nil},
		"OpenKruise denies budgets": {func(in *diagnosis.Installation) {
			in.Validating = configurations{configuration(kruise, openKruiseWebhook())}
		}, map[string]string{"protection: webhooks of others": "vpodunavailablebudget.kb.io"}},
		"OpenKruise has the budgets": {func(in *diagnosis.Installation) {
			in.Validating = configurations{configuration(kruise, openKruiseWebhook())}
			for _, n := range diagnosis.Parts()[1].Configurations {
				delete(in.Configurations, n)
			}
			for _, n := range diagnosis.Parts()[1].Deployments {
				delete(in.Deployments, n)
			}
		}, nil},
		"a part that is not installed is no fault": {func(in *diagnosis.Installation) {
			delete(in.Configurations, "breakwater-permission")
			for _, n := range diagnosis.Parts()[2].Deployments {
				delete(in.Deployments, n)
			}
		}, nil},
		"nothing is installed": {func(in *diagnosis.Installation) { *in = diagnosis.Installation{} }, map[string]string{"installation": "no part"}},
		"a guard is unenforced": {func(in *diagnosis.Installation) {
			in.SelfCheck = []corev1.Event{{Type: "Warning", Reason: "CABundleStale", Message: "breakwater: expired"}}
		}, map[string]string{"self-check": "CABundleStale: breakwater: expired"}},
		"a guard is enforced again": {func(in *diagnosis.Installation) {
			in.SelfCheck = []corev1.Event{{Type: "Warning", Reason: "CABundleStale", Message: "breakwater: expired"}, {Type: "Normal", Reason: "GuardEnforced", Message: "breakwater: no longer CABundleStale"}}
		}, nil},
		"one of two findings of a guard has ended": {func(in *diagnosis.Installation) {
			in.SelfCheck = []corev1.Event{
				{Type: "Warning", Reason: "CABundleStale", Message: "breakwater: expired"}, {Type: "Warning", Reason: "FailurePolicyIgnore", Message: "breakwater: its failurePolicy is Ignore"},
				{Type: "Normal", Reason: "FindingEnded", Message: "breakwater: no longer CABundleStale; still FailurePolicyIgnore"},
			}
		}, map[string]string{"self-check": "FailurePolicyIgnore: breakwater: its failurePolicy is Ignore"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := complete()
			tc.damage(&in)
			failed := map[string]string{}
			for _, c := range diagnosis.Examine(in) {
				if c.Result == diagnosis.ResultFail {
					failed[c.Name] = c.Message
					if c.Fix == "" {
						t.Errorf("%s has no fix", c.Name)
					}
				}
			}
			if len(failed) != len(tc.failed) {
				t.Errorf("failed are %v, want %v", failed, tc.failed)
			}
			for name, word := range tc.failed {
				if !strings.Contains(failed[name], word) {
					t.Errorf("%s says %q, want %q", name, failed[name], word)
				}
			}
		})
	}
}

func TestDoctorDeletesDuplicatesOfSettings(t *testing.T) {
	in := complete()
	for _, name := range []string{"third", "second"} {
		in.ReadyConditions["opsconfiginfo/"+name] = diagnosis.Condition{Reason: "Duplicate", Message: "blocking is older"}
	}
	const advice = "write the value that you want into the older one first"
	check := func() diagnosis.Check {
		checks := diagnosis.Examine(in)
		return checks[slices.IndexFunc(checks, func(c diagnosis.Check) bool { return c.Name == "change: Broker, functions and settings" })]
	}
	if got, want := check(), "kubectl -n altershieldoperator-system delete opsconfiginfo/second opsconfiginfo/third"; got.Fix != want || !strings.HasSuffix(got.Message, advice) {
		t.Errorf("got %q, want %q; %s", got.Fix, want, got.Message)
	}
	in.Broker = false
	if got, want := check(), "kubectl -n altershieldoperator-system get broker,trigger,ksvc,opsconfiginfo -o wide"; got.Fix != want || strings.Contains(got.Message, advice) {
		t.Errorf("got %q, want %q; %s", got.Fix, want, got.Message)
	}
}

func TestDoctorNamesACentreOutsideOfTheCluster(t *testing.T) {
	for centre, want := range map[string]bool{
		"": false, "https://permission-centre.altershieldoperator-system.svc.cluster.local": false, "https://centre.example.com": true,
		"https://permission-centre.altershieldoperator-system.svc.example.com": false, "https://permission-centre.altershieldoperator-system.svcs.example.com": true,
	} {
		in := complete()
		in.Centre = centre
		named := slices.Contains(diagnosis.Examine(in), diagnosis.Check{Name: "permission: centre", Result: diagnosis.ResultInfo,
			Message: "the centre is " + centre + ", which is not checked"})
		if named != want {
			t.Errorf("centre %q is named: %t, want %t", centre, named, want)
		}
	}
}
