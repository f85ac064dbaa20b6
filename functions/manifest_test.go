package functions_test

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	eventingduckv1 "knative.dev/eventing/pkg/apis/duck/v1"
	eventingv1 "knative.dev/eventing/pkg/apis/eventing/v1"
	"knative.dev/eventing/pkg/apis/feature"
	"sigs.k8s.io/yaml"

	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/events/delivery"
	"github.com/breakwater-dev/breakwater/test/manifest"
)

// manifests decodes all documents of a kind in the files of config/core that match
// the pattern.
func manifests[T any](t *testing.T, pattern, kind string) []T {
	t.Helper()
	files, err := filepath.Glob("../config/core/" + pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(files), err)
	}
	var out []T
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range bytes.Split(raw, []byte("\n---\n")) {
			var meta metav1.TypeMeta
			if err := yaml.Unmarshal(document, &meta); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if meta.Kind != kind {
				continue
			}
			var object T
			if err := yaml.UnmarshalStrict(document, &object); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			out = append(out, object)
		}
	}
	return out
}

// A process does not know how many others run, so each has the share of one of the most.
func TestReplicasShareTheRateLimitOfTheServer(t *testing.T) {
	for _, pattern := range []string{"600*.yaml", "610*.yaml", "620*.yaml"} {
		for _, service := range manifests[map[string]any](t, pattern, "Service") {
			most, _, err := unstructured.NestedString(service, "spec", "template", "metadata", "annotations", "autoscaling.knative.dev/max-scale")
			if err != nil || most == "" {
				t.Errorf("%s: max-scale is %q, %v", pattern, most, err)
			}
			containers, _, err := unstructured.NestedSlice(service, "spec", "template", "spec", "containers")
			if err != nil {
				t.Fatal(err)
			}
			share := map[string]any{"name": "RATE_LIMIT_REPLICAS", "value": most}
			env, _, err := unstructured.NestedSlice(containers[0].(map[string]any), "env")
			if err != nil || !slices.ContainsFunc(env, func(e any) bool { return gocmp.Equal(e, any(share)) }) {
				t.Errorf("%s: RATE_LIMIT_REPLICAS is not max-scale, %s: %v, %v", pattern, most, env, err)
			}
		}
	}
}

// Knative starts a further pod when each handles its target, so a process that handled fewer at a
// time would keep events waiting.
func TestAFunctionHandlesTheTargetOfItsScaling(t *testing.T) {
	receiver := regexp.MustCompile(`functions\.NewReceiver\((?:"(\w+)"|serveName), (\d+),`)
	sources, err := filepath.Glob("../cmd/change/functions/*.go")
	if err != nil {
		t.Fatal(err)
	}
	limits := map[string]string{}
	for _, file := range append(sources, "../cmd/judge/serve.go") {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range receiver.FindAllStringSubmatch(string(source), -1) {
			limits[cmp.Or(found[1], "judge")] = found[2]
		}
	}
	targets := map[string]string{}
	for _, pattern := range []string{"6[0-3]0-*.yaml", "../judge/600-judge.yaml", "../notify/600-notify.yaml"} {
		for _, service := range manifests[unstructured.Unstructured](t, pattern, "Service") {
			target, _, err := unstructured.NestedString(service.Object, "spec", "template", "metadata", "annotations", "autoscaling.knative.dev/target")
			if err != nil || target == "" {
				t.Errorf("%s has no target: %v", service.GetName(), err)
			}
			targets[service.GetName()] = target
		}
	}
	if diff := gocmp.Diff(targets, limits); diff != "" || len(targets) != 6 {
		t.Errorf("%d Services; targets and limits: %s", len(targets), diff)
	}
}

func triggers(t *testing.T) []eventingv1.Trigger {
	t.Helper()
	return append(manifests[eventingv1.Trigger](t, "6*.yaml", "Trigger"), manifests[eventingv1.Trigger](t, "../notify/6*.yaml", "Trigger")...)
}

func TestTriggersFilterTheTypesOfTheirFunction(t *testing.T) {
	got := map[string][]string{}
	// The default in the ConfigMap of Knative Eventing.
	ctx := feature.ToContext(t.Context(), feature.Flags{feature.DeliveryTimeout: feature.Enabled})
	for _, trigger := range triggers(t) {
		if err := trigger.Validate(ctx); err != nil {
			t.Errorf("%s: %v", trigger.Name, err)
		}
		filters := trigger.Spec.Filters
		if len(filters) == 1 && len(filters[0].Any) > 0 {
			filters = filters[0].Any
		}
		for _, filter := range filters {
			got[trigger.Spec.Subscriber.Ref.Name] = append(got[trigger.Spec.Subscriber.Ref.Name], filter.Exact["type"])
		}
	}
	want := map[string][]string{
		"submit":  {events.TypeOrderReady, events.TypeChangePodReady},
		"verdict": {events.TypeChangePodVerdict, events.TypeOrderVerdict, events.TypeOrderReady},
		"report":  {events.TypePodFinished},
		"notify":  {events.TypeChangeWorkloadSuspended, events.TypeChangeWorkloadFailed, events.TypeChangeWorkloadRolledBack},
	}
	for _, eventType := range events.Types() {
		if strings.Contains(eventType, ".changeworkload.") {
			want["report"] = append(want["report"], eventType)
		}
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestThePausesBetweenRetriesOfATriggerTakeLessThanTenSeconds(t *testing.T) {
	for _, trigger := range triggers(t) {
		delivery := trigger.Spec.Delivery
		pauses := pausesOf(t, delivery)
		if pauses >= 10*time.Second || *delivery.BackoffPolicy != "exponential" || delivery.DeadLetterSink.Ref.Name != "deadletter" {
			t.Errorf("%s: pauses are %s, delivery is %+v", trigger.Name, pauses, delivery)
		}
	}
}

// pausesOf returns the sum of the pauses between the attempts.
func pausesOf(t *testing.T, delivery *eventingduckv1.DeliverySpec) time.Duration {
	t.Helper()
	var pauses time.Duration
	for i := range *delivery.Retry {
		pauses += durationOf(t, *delivery.BackoffDelay) << i
	}
	return pauses
}

func durationOf(t *testing.T, iso8601 string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(strings.ToLower(strings.TrimPrefix(iso8601, "PT")))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestAFunctionCollectsGarbageBeforeItsMemoryLimit(t *testing.T) {
	for _, file := range []string{"600-submit", "610-verdict", "620-report"} {
		manifest.ResourcesOf(t, "../config/core/"+file+".yaml") // fails otherwise
	}
}

// The in-memory Broker calls the sink of dead letters in the request of the controller, which ends after
// delivery.DefaultSendTimeout. Wake-ups and verdicts are sent again until they took effect, so
// Triggers of functions submit and verdict need no dead letter.
func TestAnEventThatIsNotRepeatedIsADeadLetterBeforeTheControllerGivesUp(t *testing.T) {
	const coldStartOfTheSink = 4 * time.Second
	checked := 0
	for _, trigger := range triggers(t) {
		if function := trigger.Spec.Subscriber.Ref.Name; function == "submit" || function == "verdict" {
			continue
		}
		checked++
		spec := trigger.Spec.Delivery
		attempts := time.Duration(*spec.Retry+1) * durationOf(t, *spec.Timeout)
		if all := attempts + pausesOf(t, spec); all > delivery.DefaultSendTimeout-coldStartOfTheSink {
			t.Errorf("%s: all attempts take up to %s", trigger.Name, all)
		}
	}
	if checked != 2 {
		t.Errorf("checked %d Triggers", checked)
	}
}

func TestFunctionsHaveOnlyTheRightsThatTheyUse(t *testing.T) {
	const group = "app.ops.cloud.alipay.com"
	got := map[string][]string{}
	add := func(name string, rules []rbacv1.PolicyRule) {
		for _, rule := range rules {
			for _, resource := range rule.Resources {
				line := strings.Join(rule.Verbs, ",") + " " + resource
				if len(rule.ResourceNames) > 0 {
					line += " " + strings.Join(rule.ResourceNames, ",")
				}
				got[name] = append(got[name], line)
			}
			if len(rule.APIGroups) != 1 || slices.Contains(rule.APIGroups, "*") {
				t.Errorf("%s: API groups are %v", name, rule.APIGroups)
			}
			if strings.HasPrefix(rule.Resources[0], "change") != (rule.APIGroups[0] == group) {
				t.Errorf("%s: %s is not in %s", name, rule.Resources, rule.APIGroups)
			}
		}
	}
	for _, pattern := range []string{"130-*.yaml", "../judge/100-rbac.yaml", "../notify/100-rbac.yaml"} {
		for _, role := range manifests[rbacv1.ClusterRole](t, pattern, "ClusterRole") {
			add(strings.TrimPrefix(strings.TrimPrefix(role.Name, "breakwater-"), "function-"), role.Rules)
		}
		for _, role := range manifests[rbacv1.Role](t, pattern, "Role") {
			add(role.Name, role.Rules)
		}
	}
	server := []string{"get configmaps config-altershield", "get secrets altershield-token"}
	const signingKey, eventKey = "get secrets verdict-signing-key", "get secrets event-signing-key"
	want := map[string][]string{
		"submit": append([]string{"get changeworkloads", "get changepods",
			"patch changeworkloads/status", "patch changepods/status"}, append(server, eventKey)...),
		"verdict": append(append([]string{"get changeworkloads", "get changepods",
			"patch changeworkloads/status", "patch changepods/status"}, server...), signingKey+",judge-signing-key,external-judge-keys"),
		"report":     append([]string{"get changeworkloads"}, append(server, eventKey)...),
		"deadletter": {"get changeworkloads", "get changepods", "patch changeworkloads/status", "get deployments", "get statefulsets", "get daemonsets", "get services", "create events", signingKey + ",event-signing-key"},
		"notify":     {"get configmaps config-notify", "get secrets notify-webhook", eventKey},
		"callback": append(append([]string{"get,list changeworkloads", "list,watch changepods", "patch changeworkloads/status",
			"get,list,watch brokers"}, server...), signingKey, "get,list,watch configmaps config-broker"),
		"judge": {"get changeworkloads", "get changepods", "get metricchecks", "patch changepods/status", "list controllerrevisions", "list deployments", "list replicasets", "list pods",
			"get,list,watch brokers", "get configmaps config-judge", "get secrets judge-prometheus", "get secrets judge-signing-key", eventKey,
			"get,list,watch configmaps config-broker"},
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
