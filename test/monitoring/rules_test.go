package monitoring

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const root = "../.."

// rule is an alert of a PrometheusRule.
type rule struct {
	Alert       string
	Labels      map[string]string
	Annotations map[string]string
}

// groups returns the groups of all PrometheusRules as a rule file of Prometheus, and their alerts.
func groups(t *testing.T) ([]byte, []rule) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "config/monitoring/*-rules-*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal("no rules", err)
	}
	var all []any
	var alerts []rule
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var object struct{ Spec struct{ Groups []any } }
		var typed struct {
			Spec struct{ Groups []struct{ Rules []rule } }
		}
		if err := yaml.Unmarshal(raw, &object); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if err := yaml.Unmarshal(raw, &typed); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, object.Spec.Groups...)
		for _, g := range typed.Spec.Groups {
			alerts = append(alerts, g.Rules...)
		}
	}
	raw, err := yaml.Marshal(map[string]any{"groups": all})
	if err != nil {
		t.Fatal(err)
	}
	return raw, alerts
}

// example is a series with which an alert fires, and one with which it does not. Values are in the
// notation of promtool, one for each minute.
type example struct {
	series, firing, quiet string
	// labels are the labels of the alert other than severity and namespace.
	labels string
}

const (
	hours = "x180" // three hours of samples: more than the longest window of an alert
	// evalTime is when alerts are compared.
	evalTime = "150m"
	// absent is a series without samples.
	absent = "_" + hours
	// first is a counter whose series begins with its first event.
	first = "_x145 1" + hours
)

// The first word of a key is the alert. A scrape of the quiet counters failed one window before evalTime: they are not
// new because of that.
var examples = map[string]example{
	"ReleaseHeld":      {`breakwater_releases_held{reason="Suspended",pod="controller-1"}`, "0 1+0" + hours, "1x2 0" + hours, `reason="Suspended"`},
	"BatchStuck":       {`breakwater_oldest_batch_age_seconds`, "0+60" + hours, "600+0" + hours, ""},
	"ReleaseStuck":     {`breakwater_oldest_stuck_release_age_seconds`, "0+60" + hours, "600+0" + hours, ""},
	"ReleasesUnjudged": {`breakwater_batches_unjudged_total{reason="VerdictTimedOut",policy="Pass"}`, "0+1" + hours, "7x119 stale 7" + hours, `reason="VerdictTimedOut"`},
	// The quiet breaker opened seven times long ago, and once.
	"AlterShieldUnreachable":    {`breakwater_altershield_breaker_transitions_total{state="open",pod="submit-1"}`, "0+1" + hours, "7x139 stale 7x4 8" + hours, ""},
	"DeadLetters":               {`breakwater_dead_letters_total{type="dev.breakwater.changepod.verdict.v1",result="Stored"}`, "0+1" + hours, "3x134 stale 3" + hours, `type="dev.breakwater.changepod.verdict.v1"`},
	"BrokerUnresolved":          {`breakwater_event_broker_resolved{pod="controller-1"}`, "0+0" + hours, "1+0" + hours, ""},
	"EventsDropped":             {`breakwater_events_dropped_total{type="a",reason="QueueFull"}`, "0+1" + hours, "3x134 stale 3" + hours, `reason="QueueFull"`},
	"WorkloadKindUnwatched":     {`breakwater_workload_kind_watched{kind="CloneSet.apps.kruise.io"}`, "0+0" + hours, "0x145 1" + hours, `kind="CloneSet.apps.kruise.io"`},
	"WorkloadConfigInvalid":     {`breakwater_workload_config_invalid`, "1+0" + hours, "0+0" + hours, ""},
	"BreakwaterGuardUnenforced": {`breakwater_guard_unenforced{reason="NoEndpoints"}`, "1+0" + hours, "0+0" + hours, `reason="NoEndpoints"`},
	"BreakwaterGuardsUnwatched": {`breakwater_guard_unenforced{reason="NoEndpoints"}`, absent, "", ""},
	"PodDeletionBreakerOpen":    {`breakwater_deletionflow_breaker_open{name="all"}`, "1+0" + hours, "0+0" + hours, `name="all"`},
	"PodDeletionWouldBeDenied":  {`breakwater_admission_requests_total{webhook="vdeletionflow.kb.io",decision="Shadow",dry_run="false"}`, "0+1" + hours, "3x139 stale 3" + hours, ""},
	"PodDeletionClockSkewed":    {`breakwater_deletionflow_clock_skewed{pod="protection-webhook-1"}`, "1+0" + hours, "0+0" + hours, `pod="protection-webhook-1"`},
	"PodsWithoutPermission":     {`breakwater_permission_uninjected_pods{reason="PermissionNotInjected"}`, "2+0" + hours, "0+0" + hours, `reason="PermissionNotInjected"`},
	"PermissionsLeaked":         {`breakwater_permission_sets_leaked_total{reason="PermissionLeaked"}`, "0+1" + hours, "3x89 stale 3" + hours, `reason="PermissionLeaked"`},
	"LeakedPermissionReachable": {`breakwater_permission_leaked_address_pods`, "1+0" + hours, "0+0" + hours, ""},
	"PodReportsNotApplied":      {`breakwater_permission_centre_pod_report_pages_total{cluster="a",result="held"}`, "0+1" + hours, "3x29 stale 3" + hours, `cluster="a", result="held"`},
	// The test begins at the time 0.
	"CertificateNotRenewed": {`breakwater_certificate_expiry_timestamp_seconds{process="permission-centre"}`, "600000+0" + hours, "700000+0" + hours, `process="permission-centre"`},
	"ReleasesUnjudged of orders": {`breakwater_orders_unjudged_total{policy="Pass"}`, "0+1" + hours, "7x119 stale 7" + hours,
		`reason="Order"`},
	"DeadLetters of a new process":               {`breakwater_dead_letters_total{type="a",result="Stored",pod="new"}`, first, "", `type="a"`},
	"EventsDropped of a new process":             {`breakwater_events_dropped_total{type="a",reason="First",pod="new"}`, first, "", `reason="First"`},
	"ReleasesUnjudged of a new process":          {`breakwater_batches_unjudged_total{reason="First",policy="Pass"}`, first, "", `reason="First"`},
	"PermissionsLeaked of a new process":         {`breakwater_permission_sets_leaked_total{reason="First"}`, first, "", `reason="First"`},
	"PodReportsNotApplied of a new process":      {`breakwater_permission_centre_pod_report_pages_total{cluster="new",result="held"}`, first, "", `cluster="new", result="held"`},
	"PermissionBreakersOpening of a new process": {`breakwater_permission_breaker_transitions_total{reason="First"}`, "_x145 11" + hours, "", `reason="First"`},
	"PodReportsMissing":                          {`breakwater_permission_centre_last_pod_report_timestamp_seconds{cluster="a"}`, "-20000+0" + hours, "0+60" + hours, `cluster="a"`},
	"PermissionStoreAlmostFull":                  {`breakwater_permission_centre_store_free_bytes`, "200000000+0" + hours, "800000000+0" + hours, ""},
	"OIDCIssuerUnreachable":                      {`breakwater_permission_centre_oidc_issuer_unreachable{issuer="https://issuer"}`, "1+0" + hours, "0+0" + hours, `issuer="https://issuer"`},
	"PermissionBreakersOpening":                  {`breakwater_permission_breaker_transitions_total{reason="BreakerOpenDenied"}`, "0+5" + hours, "0+1" + hours, `reason="BreakerOpenDenied"`},
}

func TestAlertsFireWhenTheyShould(t *testing.T) {
	text, alerts := groups(t)
	testRules(t, text, promtoolTests(t, alerts))
}

// A metric that is pushed (OTLP) has labels job and instance, and none of those that a PodMonitor adds.
func TestAlertsAboutAPodFireForMetricsThatArePushed(t *testing.T) {
	text, _ := groups(t)
	const broker, skewed = `alertname="BrokerUnresolved", alertstate="firing"`, `alertname="PodDeletionClockSkewed", alertstate="firing"`
	var tests strings.Builder
	for _, process := range []string{"controller", "webhook", "altershieldoperator-system/controller"} {
		var firing promtoolTest
		firing.add(fmt.Sprintf(`breakwater_event_broker_resolved{job="%s",instance="pod-1"}`, process), "0+0"+hours)
		firing.query(broker, fmt.Sprintf(`{labels: 'ALERTS{%s, severity="critical", namespace="%s"}', value: 1}`, broker, systemNamespace))
		tests.WriteString(firing.String())
	}
	var quiet, clock promtoolTest
	quiet.add(`breakwater_event_broker_resolved{job="controller",instance="pod-1"}`, "1+0"+hours)
	quiet.add(`breakwater_event_broker_resolved{job="protection-controller",instance="pod-2"}`, "0+0"+hours)
	quiet.query(broker)
	clock.add(`breakwater_deletionflow_clock_skewed{job="protection-webhook",instance="protection-webhook-1"}`, "1+0"+hours)
	clock.query(skewed, fmt.Sprintf(`{labels: 'ALERTS{%s, severity="warning", namespace="%s", instance="protection-webhook-1"}', value: 1}`, skewed, systemNamespace))
	testRules(t, text, "rule_files: [rules.yaml]\nevaluation_interval: 1m\ntests:\n"+tests.String()+quiet.String()+clock.String())
}

// testRules checks a rule file and runs tests of promtool about it.
func testRules(t *testing.T, rules []byte, tests string) {
	t.Helper()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is missing: install the package prometheus")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "rules.yaml"), rules, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "tests.yaml"), []byte(tests), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check", "rules", "rules.yaml"}, {"test", "rules", "tests.yaml"}} {
		command := exec.CommandContext(t.Context(), promtool, args...)
		command.Dir = dir
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// promtoolTests returns a file for promtool with three tests: alerts that fire, alerts that are quiet,
// and alerts that fire because a series is absent, which the other tests have.
func promtoolTests(t *testing.T, alerts []rule) string {
	t.Helper()
	var firing, quiet, alone promtoolTest
	for _, a := range alerts {
		labels := fmt.Sprintf(`alertname="%s", alertstate="firing"`, a.Alert)
		var samples []string
		found := false
		for name, e := range examples {
			if strings.Fields(name)[0] != a.Alert {
				continue
			}
			found = true
			all := strings.TrimSuffix(fmt.Sprintf(`%s, severity="%s", namespace="%s", %s`, labels, a.Labels["severity"], systemNamespace, e.labels), ", ")
			sample := fmt.Sprintf(`{labels: 'ALERTS{%s}', value: 1}`, all)
			if e.firing == absent {
				alone.add(e.series, e.firing)
				alone.query(labels, sample)
				continue
			}
			samples = append(samples, sample)
			firing.add(e.series, e.firing)
			quiet.add(e.series, e.quiet)
		}
		if !found {
			t.Errorf("alert %s has no example", a.Alert)
		} else if len(samples) > 0 {
			firing.query(labels, samples...)
			quiet.query(labels)
		}
	}
	// Nobody need act on batches without a judge, or of a release that was replaced.
	for _, reason := range []string{"NoServerConfigured", "Superseded"} {
		quiet.add(`breakwater_batches_unjudged_total{reason="`+reason+`",policy="Pass"}`, "0+1"+hours)
	}
	// The series of BreakwaterGuardUnenforced keeps BreakwaterGuardsUnwatched quiet.
	quiet.queries = append(quiet.queries, `{expr: 'ALERTS{alertname="BreakwaterGuardsUnwatched", alertstate="firing"}', eval_time: `+evalTime+`, exp_samples: []}`)
	return "rule_files: [rules.yaml]\nevaluation_interval: 1m\ntests:\n" + firing.String() + quiet.String() + alone.String()
}

// promtoolTest is a test with series of its own.
type promtoolTest struct{ series, queries []string }

func (p *promtoolTest) add(series, values string) {
	p.series = append(p.series, fmt.Sprintf("{series: '%s', values: '%s'}", series, values))
}

func (p *promtoolTest) query(labels string, want ...string) {
	p.queries = append(p.queries, fmt.Sprintf("{expr: 'ALERTS{%s}', eval_time: %s, exp_samples: [%s]}", labels, evalTime, strings.Join(want, ", ")))
}

func (p *promtoolTest) String() string {
	return fmt.Sprintf("- interval: 1m\n  input_series: [%s]\n  promql_expr_test: [%s]\n", strings.Join(p.series, ", "), strings.Join(p.queries, ", "))
}

// An AlertmanagerConfig receives the alerts with the label of its namespace. The expressions aggregate it away.
func TestEachAlertHasTheNamespaceOfBreakwater(t *testing.T) {
	_, alerts := groups(t)
	for _, a := range alerts {
		if got := a.Labels["namespace"]; got != systemNamespace {
			t.Errorf("alert %s: label namespace is %q", a.Alert, got)
		}
	}
}

func TestEachAlertHasARunbook(t *testing.T) {
	const prefix = "https://github.com/breakwater-dev/breakwater/blob/main/"
	index, err := os.ReadFile(filepath.Join(root, "docs/monitoring.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, alerts := groups(t)
	for _, a := range alerts {
		page := "docs/runbooks/" + a.Alert + ".md"
		if got := a.Annotations["runbook_url"]; got != prefix+page {
			t.Errorf("alert %s: runbook_url is %q, want %q", a.Alert, got, prefix+page)
		}
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, heading := range []string{"# " + a.Alert + "\n", "**Meaning.**", "**Impact.**", "## Look\n", "## Act\n"} {
			if !strings.Contains(string(text), heading) {
				t.Errorf("%s lacks %q", page, heading)
			}
		}
		if !strings.Contains(string(index), "(runbooks/"+a.Alert+".md)") {
			t.Errorf("docs/monitoring.md does not list alert %s", a.Alert)
		}
	}
}
