package gitops

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/cel-go/cel"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const (
	releases = "../../reconciler/change/changeworkload/testdata/kstatus"
	argo     = "../../config/samples/argocd-health.yaml"
	flux     = "../../config/samples/flux-health.yaml"
)

func read(t *testing.T, file string) *unstructured.Unstructured {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(raw))
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return o
}

// want is what kstatus and Argo CD say about each release.
var want = map[string]struct {
	kstatus status.Status
	argo    string
}{
	"new":                 {status.InProgressStatus, "Progressing"},
	"running":             {status.InProgressStatus, "Progressing"},
	"succeeded":           {status.CurrentStatus, "Healthy"},
	"suspended":           {status.FailedStatus, "Degraded"},
	"held-unjudged":       {status.FailedStatus, "Suspended"},
	"failed-shadow":       {status.FailedStatus, "Degraded"},
	"timed-out":           {status.FailedStatus, "Degraded"},
	"observed-generation": {status.InProgressStatus, "Progressing"},
}

func TestToolsReadAHeldReleaseAsHeldAndARunningOneAsInProgress(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(releases, "*.yaml"))
	if err != nil || len(files) != len(want)-1 {
		t.Fatalf("%d releases in %s, want %d: %v", len(files), releases, len(want)-1, err)
	}
	script := scripts(t)["app.ops.cloud.alipay.com_ChangeWorkload"]
	check := func(name string, o *unstructured.Unstructured) {
		t.Run(name, func(t *testing.T) {
			got, err := status.Compute(o)
			if err != nil || got.Status != want[name].kstatus {
				t.Errorf("kstatus: %+v, %v, want %s", got, err, want[name].kstatus)
			}
			if health, message := run(t, script, o); health != want[name].argo || (health != "Healthy" && message == "") {
				t.Errorf("Argo CD: %s %q, want %s", health, message, want[name].argo)
			}
		})
	}
	for _, file := range files {
		check(strings.TrimSuffix(filepath.Base(file), ".yaml"), read(t, file))
	}
	// The reconciler has not seen the latest change of the object.
	changed := read(t, filepath.Join(releases, "succeeded.yaml"))
	changed.SetGeneration(2)
	check("observed-generation", changed)
}

// workload is a workload whose rollout is complete.
const workload = `
apiVersion: apps/v1
kind: %KIND
metadata: {name: web, namespace: shop, generation: 2}
spec: {replicas: 2, updateStrategy: {type: RollingUpdate}}
status: {observedGeneration: 2, replicas: 2, readyReplicas: 2, updatedReplicas: 2, currentRevision: b, updateRevision: b, currentReplicas: 2, availableReplicas: 2,
  desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2, numberReady: 2, currentNumberScheduled: 2}
`

func TestAHeldWorkloadIsNotHealthy(t *testing.T) {
	all := scripts(t)
	set := func(value any, path ...string) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) {
			if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
				t.Fatal(err)
			}
		}
	}
	with := func(spec, status string) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) {
			fields := parse(t, "{apiVersion: apps/v1, kind: "+o.GetKind()+", spec: "+spec+", status: "+status+"}")
			o.Object["spec"], o.Object["status"] = fields.Object["spec"], fields.Object["status"]
		}
	}
	const rolling, onDelete, partition = "{replicas: 2, updateStrategy: {type: RollingUpdate}}",
		"{replicas: 2, updateStrategy: {type: OnDelete}}", "{replicas: 2, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}}"
	suspended := set("1700000000", "metadata", "labels", "altershield.defense.antgroup.com/suspend")
	hold := func(former, strategy string) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) {
			set(`{"attempt":2,`+former+`"unjudged":true}`, "metadata", "annotations", "altershield.defense.antgroup.com/hold")(o)
			set(parse(t, "{apiVersion: apps/v1, kind: "+o.GetKind()+", updateStrategy: "+strategy+"}").Object["updateStrategy"], "spec", "updateStrategy")(o)
		}
	}
	paused := func(hold string) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) {
			set(true, "spec", "paused")(o)
			if hold != "" {
				set(hold, "metadata", "annotations", "altershield.defense.antgroup.com/hold")(o)
			}
		}
	}
	const replicas = "{replicas: 2}"
	for name, tc := range map[string]struct {
		kind   string
		change func(*unstructured.Unstructured)
		argo   string
		failed bool
	}{
		"a complete StatefulSet":         {"StatefulSet", func(*unstructured.Unstructured) {}, "Healthy", false},
		"a suspended StatefulSet":        {"StatefulSet", suspended, "Degraded", true},
		"a held StatefulSet":             {"StatefulSet", hold("", "{type: RollingUpdate, rollingUpdate: {partition: 2147483647}}"), "Suspended", true},
		"a StatefulSet that rolls out":   {"StatefulSet", set(int64(1), "status", "updatedReplicas"), "Progressing", false},
		"a StatefulSet that is not seen": {"StatefulSet", set(int64(1), "status", "observedGeneration"), "Progressing", false},
		"a complete DaemonSet":           {"DaemonSet", func(*unstructured.Unstructured) {}, "Healthy", false},
		"a suspended DaemonSet":          {"DaemonSet", suspended, "Degraded", true},
		"a held DaemonSet":               {"DaemonSet", hold(`"former":"RollingUpdate",`, "{type: OnDelete}"), "Suspended", true},
		"a DaemonSet that rolls out":     {"DaemonSet", set(int64(1), "status", "updatedNumberScheduled"), "Progressing", false},

		"a complete Deployment":  {"Deployment", func(*unstructured.Unstructured) {}, "Healthy", false},
		"a suspended Deployment": {"Deployment", func(o *unstructured.Unstructured) { suspended(o); paused(`{"attempt":2}`)(o) }, "Degraded", true},
		"a held Deployment":      {"Deployment", paused(`{"attempt":2,"unjudged":true}`), "Suspended", true},
		"a paused Deployment":    {"Deployment", paused(""), "Suspended", false},
		"a Deployment with nothing to stop": {"Deployment", set(`{"attempt":2,"former":true,"unjudged":true}`, "metadata", "annotations",
			"altershield.defense.antgroup.com/hold"), "Suspended", true},
		"a Deployment that was resumed": {"Deployment", set(`{"attempt":2,"unjudged":true}`, "metadata", "annotations",
			"altershield.defense.antgroup.com/hold"), "Healthy", false},
		"a Deployment that was created":           {"Deployment", with(replicas, "{}"), "Progressing", false},
		"a Deployment that begins its rollout":    {"Deployment", with(replicas, "{observedGeneration: 2, replicas: 2, availableReplicas: 2}"), "Progressing", false},
		"a Deployment with an old pod":            {"Deployment", with(replicas, "{observedGeneration: 2, replicas: 3, updatedReplicas: 2, availableReplicas: 3}"), "Progressing", false},
		"a Deployment without an available pod":   {"Deployment", with(replicas, "{observedGeneration: 2, replicas: 2, updatedReplicas: 2}"), "Progressing", false},
		"a Deployment scaled to 0":                {"Deployment", with("{replicas: 0}", "{observedGeneration: 2}"), "Healthy", false},
		"a Deployment that exceeded its deadline": {"Deployment", with(replicas, "{observedGeneration: 2, replicas: 2, conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}"), "Degraded", false},

		// The record of an unjudged hold stays when somebody resumes the rollout.
		"a StatefulSet that was resumed":        {"StatefulSet", hold("", "{type: RollingUpdate}"), "Healthy", false},
		"a StatefulSet that was resumed partly": {"StatefulSet", hold(`"former":1,`, "{type: RollingUpdate, rollingUpdate: {partition: 1}}"), "Healthy", false},
		"a DaemonSet that was resumed":          {"DaemonSet", hold(`"former":"RollingUpdate",`, "{type: RollingUpdate}"), "Healthy", false},
		"a StatefulSet with nothing to stop":    {"StatefulSet", hold(`"former":2147483647,`, "{type: OnDelete}"), "Suspended", true},
		"a DaemonSet with nothing to stop":      {"DaemonSet", hold(`"former":"OnDelete",`, "{type: RollingUpdate}"), "Suspended", true},

		// The API server omits most numbers that are 0.
		"a StatefulSet that was created":                   {"StatefulSet", with(rolling, "{replicas: 0}"), "Progressing", false},
		"a StatefulSet without a Ready pod":                {"StatefulSet", with(rolling, "{observedGeneration: 2, replicas: 2, updatedReplicas: 2}"), "Progressing", false},
		"a StatefulSet that begins its rollout":            {"StatefulSet", with(rolling, "{observedGeneration: 2, replicas: 2, readyReplicas: 2}"), "Progressing", false},
		"a StatefulSet scaled to 0":                        {"StatefulSet", with("{replicas: 0, updateStrategy: {type: RollingUpdate}}", "{observedGeneration: 2, replicas: 0}"), "Healthy", false},
		"a StatefulSet above its partition":                {"StatefulSet", with(partition, "{observedGeneration: 2, replicas: 2, readyReplicas: 2, updatedReplicas: 1}"), "Healthy", false},
		"a StatefulSet that rolls out above its partition": {"StatefulSet", with(partition, "{observedGeneration: 2, replicas: 2, readyReplicas: 2}"), "Progressing", false},
		"a StatefulSet with OnDelete":                      {"StatefulSet", with(onDelete, "{observedGeneration: 2, replicas: 2, readyReplicas: 2}"), "Healthy", false},
		"a StatefulSet with OnDelete that is not Ready":    {"StatefulSet", with(onDelete, "{observedGeneration: 2, replicas: 2, readyReplicas: 1}"), "Progressing", false},
		"a DaemonSet that was created":                     {"DaemonSet", with(rolling, "{desiredNumberScheduled: 0, numberReady: 0}"), "Progressing", false},
		"a DaemonSet without an available pod":             {"DaemonSet", with(rolling, "{observedGeneration: 2, desiredNumberScheduled: 2, updatedNumberScheduled: 2}"), "Progressing", false},
		"a DaemonSet that begins its rollout":              {"DaemonSet", with(rolling, "{observedGeneration: 2, desiredNumberScheduled: 2, numberAvailable: 2}"), "Progressing", false},
		"a DaemonSet without nodes":                        {"DaemonSet", with(rolling, "{observedGeneration: 2, desiredNumberScheduled: 0, numberReady: 0}"), "Healthy", false},
		"a DaemonSet with OnDelete":                        {"DaemonSet", with(onDelete, "{observedGeneration: 2, desiredNumberScheduled: 2, numberAvailable: 2}"), "Healthy", false},
		"a DaemonSet with OnDelete and no available pod":   {"DaemonSet", with(onDelete, "{observedGeneration: 2, desiredNumberScheduled: 2, updatedNumberScheduled: 2}"), "Progressing", false},
	} {
		t.Run(name, func(t *testing.T) {
			o := parse(t, strings.ReplaceAll(workload, "%KIND", tc.kind))
			tc.change(o)
			if got, message := run(t, all["apps_"+tc.kind], o); got != tc.argo || (got != "Healthy" && message == "") {
				t.Errorf("Argo CD: %s %q, want %s", got, message, tc.argo)
			} else if command := "kubectl breakwater explain " + strings.ToLower(tc.kind) + "/web -n shop"; tc.failed && !strings.HasSuffix(message, command) {
				t.Errorf("Argo CD: %q does not end with %q", message, command)
			}
			if tc.kind == "Deployment" {
				return // Flux's own check waits for it
			}
			if got := evaluate(t, tc.kind, "failed", o); got != tc.failed {
				t.Errorf("Flux: failed is %t, want %t", got, tc.failed)
			}
			if current := tc.argo == "Healthy"; evaluate(t, tc.kind, "current", o) != current {
				t.Errorf("Flux: current is %t, want %t", !current, current)
			}
		})
	}
}

// A sync with several waves fails when an object is Degraded.
func TestASuspendedWorkloadIsDegradedUnlessARepairRuns(t *testing.T) {
	all := scripts(t)
	for name, tc := range map[string]struct{ bypass, hold, want string }{
		"a rollback by a person":            {`{"kind":"rollback","user":"alice","suspend":"1700000000","attempt":3}`, "", "Healthy"},
		"a rollback by the controller":      {`{"kind":"rollback","user":"system:serviceaccount:altershieldoperator-system:controller","suspend":"1700000000","attempt":3}`, "", "Degraded"},
		"a repair that failed":              {`{"kind":"repair","user":"alice","suspend":"1700000000","attempt":3}`, `{"attempt":3}`, "Degraded"},
		"a bypass of an earlier suspension": {`{"kind":"repair","user":"alice","suspend":"1600000000","attempt":2}`, "", "Degraded"},
		"a bypass that has ended":           {`{"kind":"repair","user":"alice","suspend":"1700000000","attempt":2,"ended":true}`, "", "Degraded"},
	} {
		for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
			o := parse(t, strings.ReplaceAll(workload, "%KIND", kind))
			o.SetLabels(map[string]string{"altershield.defense.antgroup.com/suspend": "1700000000"})
			annotations := map[string]string{"altershield.defense.antgroup.com/bypass": tc.bypass}
			if tc.hold != "" {
				annotations["altershield.defense.antgroup.com/hold"] = tc.hold
			}
			o.SetAnnotations(annotations)
			if got, _ := run(t, all["apps_"+kind], o); got != tc.want {
				t.Errorf("%s, %s: %s, want %s", kind, name, got, tc.want)
			}
		}
	}
}

// scripts returns the Lua scripts of the sample by group_Kind.
func scripts(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	data, _, err := unstructured.NestedStringMap(read(t, argo).Object, "data")
	if err != nil {
		t.Fatal(err)
	}
	for key, script := range data {
		all[strings.TrimPrefix(key, "resource.customizations.health.")] = script
	}
	return all
}

// run runs a health script as Argo CD does: the object is the global obj, and only safe
// libraries are open.
func run(t *testing.T, script string, o *unstructured.Unstructured) (health, message string) {
	t.Helper()
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	for name, open := range map[string]lua.LGFunction{"": lua.OpenBase, lua.TabLibName: lua.OpenTable, lua.StringLibName: lua.OpenString, lua.MathLibName: lua.OpenMath} {
		if err := l.CallByParam(lua.P{Fn: l.NewFunction(open), NRet: 0, Protect: true}, lua.LString(name)); err != nil {
			t.Fatal(err)
		}
	}
	l.SetGlobal("obj", value(l, o.Object))
	if err := l.DoString(script); err != nil {
		t.Fatal(err)
	}
	answer, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the script returns %s, want a table", l.Get(-1).Type())
	}
	message = ""
	if m := answer.RawGetString("message"); m != lua.LNil {
		message = m.String()
	}
	return answer.RawGetString("status").String(), message
}

// value converts JSON to Lua.
func value(l *lua.LState, v any) lua.LValue {
	switch v := v.(type) {
	case map[string]any:
		table := l.NewTable()
		for key, item := range v {
			table.RawSetString(key, value(l, item))
		}
		return table
	case []any:
		table := l.NewTable()
		for _, item := range v {
			table.Append(value(l, item))
		}
		return table
	case string:
		return lua.LString(v)
	case bool:
		return lua.LBool(v)
	case int64:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	default:
		return lua.LNil
	}
}

// evaluate evaluates an expression of the Flux sample for a kind: each field of the object
// is a variable.
func evaluate(t *testing.T, kind, name string, o *unstructured.Unstructured) bool {
	t.Helper()
	exprs, _, err := unstructured.NestedSlice(read(t, flux).Object, "spec", "healthCheckExprs")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range exprs {
		fields := e.(map[string]any)
		if fields["kind"] != kind {
			continue
		}
		env, err := cel.NewEnv(cel.Variable("metadata", cel.DynType), cel.Variable("spec", cel.DynType), cel.Variable("status", cel.DynType))
		if err != nil {
			t.Fatal(err)
		}
		ast, issues := env.Compile(fields[name].(string))
		if issues.Err() != nil {
			t.Fatal(issues.Err())
		}
		program, err := env.Program(ast)
		if err != nil {
			t.Fatal(err)
		}
		out, _, err := program.Eval(o.Object)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return out.Value() == true
	}
	t.Fatalf("the sample has no expressions for %s", kind)
	return false
}
