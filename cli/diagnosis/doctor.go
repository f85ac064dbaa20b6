package diagnosis

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// centre is the name of the Deployment and the Service of the permission centre.
const centre = "permission-centre"

// subscribers are the functions that need a Trigger. Function report is absent: who wants no reports
// deletes its Trigger.
var subscribers = []string{"submit", "verdict", "judge", "notify"}

// functions are those that part change needs. Function report is absent here, too.
var functions = []string{"submit", "verdict", "deadletter", "callback"}

// FixNotInstalled is the fix if the cluster does not have Breakwater or a part of it.
const FixNotInstalled = "select another cluster with --context, or install it (docs/install.md)"

// Part is a part of Breakwater.
type Part struct {
	Name string
	// Configurations are its webhook configurations, CRDs the names of its CRDs.
	Configurations, CRDs []string
	// Deployments are the names of its Deployments.
	Deployments []string
	// Knative: its functions run on Knative and its events pass a Broker.
	Knative bool
	// Budgets: it enforces budgets.
	Budgets bool
}

// Parts are the parts that doctor checks, as config installs them. Function judge, of part judge, is
// checked with the functions of part change.
func Parts() []Part {
	const change, policy = ".app.ops.cloud.alipay.com", ".policy.kruise.io"
	return []Part{
		{
			Name: "change", Configurations: []string{"breakwater"},
			CRDs:        []string{"changeworkloads" + change, "changepods" + change, "releasechecks" + change, "opsconfiginfoes" + change, "metricchecks.judge.breakwater.dev"},
			Deployments: []string{"controller", "webhook", "openapi"}, Knative: true,
		},
		{
			Name: "protection", Configurations: []string{"breakwater-protection", "breakwater-deletionflow"},
			CRDs:        []string{"podunavailablebudgets" + policy, "poddeletionflowcontrols" + policy},
			Deployments: []string{"protection-controller", "protection-webhook"}, Budgets: true,
		},
		{
			Name: "permission", Configurations: []string{"breakwater-permission"},
			Deployments: []string{"permission-controller", "permission-webhook", "init-action-server", centre},
		},
	}
}

// Installation has the objects of Breakwater in the cluster.
type Installation struct {
	// Configurations are the webhook configurations by name; false if a webhook has no caBundle.
	Configurations map[string]bool
	// Validating are the validating configurations, also those of others.
	Validating []admissionregistrationv1.ValidatingWebhookConfiguration
	// CRDs are the names of the established CRDs.
	CRDs []string
	// Deployments are those of Breakwater by name.
	Deployments map[string]Deployment
	// ReadyConditions are those of the Brokers, Triggers and Services of Knative, and of the
	// OpsConfigInfos, by kind/name.
	ReadyConditions map[string]Condition
	// Subscribers are the names of the functions to which a Trigger sends events.
	Subscribers []string
	// Broker: there is a Broker.
	Broker bool
	// Server is the address of the AlterShield server; empty if none is configured.
	Server string
	// ServerInvalid has the mistakes in the settings of the server; nil if there are none.
	ServerInvalid error
	// JudgesRejected has why each verdict of a judge of your own in the setting judges is rejected.
	JudgesRejected []string
	// JudgesUnknown is why JudgesRejected is unknown; nil if it is known.
	JudgesUnknown error
	// Centre is the address of the permission centre; empty if the setting is missing.
	Centre string
	// SelfCheck are the Events of the self-check on the Deployments, oldest first.
	SelfCheck []corev1.Event
	// Now is the time of the examination.
	Now time.Time
	// Flags are the flags that select the cluster, each after a space. Printed commands end in them.
	Flags string
}

// Deployment is the state of a Deployment.
type Deployment struct {
	Wanted, Available int32
	// Image is the image of its container.
	Image string
}

// Condition is the condition Ready of an object.
type Condition struct {
	True            bool
	Reason, Message string
}

// Result is the result of a check.
type Result string

// The results.
const (
	ResultOK   Result = "OK"
	ResultInfo Result = "INFO"
	ResultFail Result = "FAIL"
)

// Check is one check of the installation.
type Check struct {
	Name    string `json:"name"`
	Result  Result `json:"result"`
	Message string `json:"message"`
	// Fix says what to do.
	Fix string `json:"fix,omitempty"`
}

// endings are the reasons of the Events that close a finding of the self-check.
var endings = []string{"GuardEnforced", "FindingEnded"}

// SelfCheckEvents is the field selector of the Events of the self-check in the namespace of Breakwater, which has no
// other Events of this source on Deployments.
const SelfCheckEvents = "involvedObject.kind=Deployment,source=breakwater"

// maxEventAge is the age of its last Event at which a finding has ended: the Event is repeated every 30 minutes, and two
// clocks may differ by 5.
const maxEventAge = 35 * time.Minute

// Examine checks an installation. A part without any webhook configuration and Deployment
// is not installed, which is not a fault.
func Examine(in Installation) []Check {
	var checks []Check
	installed := false
	for _, p := range Parts() {
		if !in.has(p) {
			checks = append(checks, Check{p.Name, ResultInfo, "not installed", ""})
			continue
		}
		installed = true
		checks = append(checks, in.examine(p)...)
	}
	if !installed {
		return []Check{{"installation", ResultFail, "the cluster has no part of Breakwater", FixNotInstalled}}
	}
	return append(checks, in.selfCheck())
}

func (in Installation) has(p Part) bool {
	return slices.ContainsFunc(p.Configurations, func(n string) bool { _, ok := in.Configurations[n]; return ok }) ||
		slices.ContainsFunc(p.Deployments, func(n string) bool { _, ok := in.Deployments[n]; return ok })
}

func (in Installation) examine(p Part) (checks []Check) {
	add := func(what string, wrong []string, ok, fix string) {
		c := Check{p.Name + ": " + what, ResultOK, ok, ""}
		if len(wrong) > 0 {
			slices.Sort(wrong)
			c.Result, c.Message, c.Fix = ResultFail, strings.Join(wrong, "; "), fix
		}
		checks = append(checks, c)
	}
	folder := map[string]string{"change": "config/core", "protection": "config/protection", "permission": "config/permission"}[p.Name]
	var wrong []string
	for _, n := range p.CRDs {
		if !slices.Contains(in.CRDs, n) {
			wrong = append(wrong, n+" is missing or not established")
		}
	}
	if len(p.CRDs) > 0 {
		add("CRDs", wrong, fmt.Sprintf("%d established", len(p.CRDs)), "apply the CRDs of "+folder)
	}
	wrong = nil
	for _, n := range p.Configurations {
		switch trusted, ok := in.Configurations[n]; {
		case !ok:
			wrong = append(wrong, n+" is missing")
		case !trusted:
			wrong = append(wrong, n+" has no caBundle")
		}
	}
	add("webhooks", wrong, "registered", "apply "+folder+"; a running webhook sets the caBundle within seconds")
	wrong = nil
	var images []string
	for _, n := range p.Deployments {
		d, ok := in.Deployments[n]
		switch {
		case !ok && n == centre && in.foreignCentre():
		case !ok:
			wrong = append(wrong, "Deployment "+n+" is missing")
		case d.Available < max(d.Wanted, 1):
			wrong = append(wrong, fmt.Sprintf("Deployment %s has %d of %d pods available", n, d.Available, d.Wanted))
		}
		if ok {
			images = append(images, d.Image)
		}
	}
	add("components", wrong, "available: "+strings.Join(images, ", "), "kubectl -n altershieldoperator-system get deployments,pods"+in.Flags)
	if slices.Contains(p.Deployments, centre) && in.foreignCentre() {
		checks = append(checks, Check{p.Name + ": centre", ResultInfo, "the centre is " + in.Centre + ", which is not checked", ""})
	}
	if p.Knative {
		checks = append(checks, in.examineChange()...)
	}
	if p.Budgets {
		checks = append(checks, ExamineBudgetWebhooks(in.Validating))
	}
	return checks
}

// foreignCentre reports whether the permission centre is not the one that config/permission installs. One centre serves
// many clusters.
func (in Installation) foreignCentre() bool {
	u, err := url.Parse(in.Centre)
	if err != nil || u.Hostname() == "" {
		return false
	}
	const inNamespace = centre + "." + v1alpha1.SystemNamespace
	host := u.Hostname()
	return host != centre && host != inNamespace && !strings.HasPrefix(host+".", inNamespace+".svc.")
}

func (in Installation) examineChange() []Check {
	broker := Check{"change: Broker, functions and settings", ResultOK, "all are Ready", ""}
	var wrong, duplicates []string
	for name, c := range in.ReadyConditions {
		if !c.True {
			wrong = append(wrong, fmt.Sprintf("%s is not Ready: %s %s", name, c.Reason, c.Message))
		}
		if c.Reason == v1alpha1.ReasonDuplicate {
			duplicates = append(duplicates, name)
		}
	}
	for _, function := range functions {
		if _, installed := in.ReadyConditions["service/"+function]; !installed {
			wrong = append(wrong, fmt.Sprintf("service/%s is missing: apply its part again", function))
		}
	}
	for _, function := range subscribers {
		if _, installed := in.ReadyConditions["service/"+function]; installed && !slices.Contains(in.Subscribers, function) {
			wrong = append(wrong, fmt.Sprintf("service/%s is the subscriber of no Trigger: apply its part again", function))
		}
	}
	if !in.Broker {
		wrong = append(wrong, "there is no Broker")
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		broker = Check{broker.Name, ResultFail, strings.Join(wrong, "; "), "kubectl -n altershieldoperator-system get broker,trigger,ksvc,opsconfiginfo -o wide" + in.Flags}
		if len(duplicates) == len(wrong) {
			slices.Sort(duplicates)
			broker.Message += "; write the value that you want into the older one first"
			broker.Fix = "kubectl -n altershieldoperator-system delete " + strings.Join(duplicates, " ") + in.Flags
		}
	}
	server := Check{"change: AlterShield server", ResultOK, in.Server, ""}
	switch {
	case in.ServerInvalid != nil:
		server = Check{server.Name, ResultFail, "the settings are invalid, so no call is made: " + strings.ReplaceAll(in.ServerInvalid.Error(), "\n", "; "),
			"correct ConfigMap config-altershield: kubectl -n altershieldoperator-system edit configmap config-altershield" + in.Flags}
	case in.Server == "":
		server = Check{server.Name, ResultInfo, "none is configured: batches without another judge (a MetricCheck, or a judge of your own) are unjudged, and the setting no-verdict decides", "docs/change/altershield.md"}
	}
	checks := []Check{broker, server}
	const judges = "change: judges"
	switch {
	case in.JudgesUnknown != nil:
		checks = append(checks, Check{judges, ResultInfo, in.JudgesUnknown.Error(), ""})
	case len(in.JudgesRejected) > 0:
		checks = append(checks, Check{judges, ResultFail, "verdicts of a judge in the setting judges are rejected, so batches that wait for it stay unjudged: " + strings.Join(in.JudgesRejected, "; "),
			"correct a misspelled name (judges of Breakwater: server, metrics), or add or correct the key of your judge (docs/judge/your-own.md)"})
	}
	return checks
}

// selfCheck reports the open findings of the self-check.
func (in Installation) selfCheck() Check {
	open := map[string]string{}
	for _, e := range in.SelfCheck {
		if in.Now.Sub(e.LastTimestamp.Time) > maxEventAge {
			continue
		}
		guard, rest, _ := strings.Cut(e.Message, ": ")
		if slices.Contains(endings, e.Reason) {
			reason, _, _ := strings.Cut(strings.TrimPrefix(rest, "no longer "), ";")
			delete(open, guard+" "+reason)
		} else {
			open[guard+" "+e.Reason] = e.Reason + ": " + e.Message
		}
	}
	if len(open) == 0 {
		// INFO: without a running controller, or if the API server deletes Events earlier, a finding has no Event.
		return Check{"self-check", ResultInfo, "no Event of the last 35 minutes shows an open finding; metric breakwater_guard_unenforced also shows findings without an Event", ""}
	}
	var all []string
	for _, text := range open {
		all = append(all, text)
	}
	slices.Sort(all)
	return Check{"self-check", ResultFail, strings.Join(all, "; "), "docs/protection/self-check.md has the fix of each reason"}
}
