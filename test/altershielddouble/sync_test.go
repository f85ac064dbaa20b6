package altershielddouble

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// releaseScene is the scene of generation 1.
const releaseScene = "release"

func newReleaseFixture(t *testing.T) *fixture {
	t.Helper()
	return newFixture(t, func(o *Options) { o.Scene, o.Generation1Scene = "scene", releaseScene })
}

// checked calls the synchronous check and advances the clock by its duration.
func (f *fixture) checked(t *testing.T, takes time.Duration, more map[string]any) answer {
	t.Helper()
	fields := map[string]any{
		"changeSceneKey": releaseScene, "checkTimeout": 1000,
		"changeParamJson": `{"namespace":"default","workloadName":"web"}`,
	}
	for key, value := range more {
		fields[key] = value
	}
	answers := make(chan answer)
	go func() { answers <- f.call(t, actionSyncStart, orderBody(fields)) }()
	if takes > 0 {
		f.step(t, takes)
	}
	select {
	case a := <-answers:
		return a
	case <-time.After(10 * time.Second):
		t.Fatalf("no answer after %s", takes)
		return answer{}
	}
}

// verdict returns the decisive fields of the verdict of a synchronous check.
func (a answer) verdict(t *testing.T) map[string]any {
	t.Helper()
	v, _ := a.result.Domain["verdict"].(map[string]any)
	if a.code() != "000" || v == nil {
		t.Fatal(a.raw)
	}
	rules, _ := v["rules"].([]any)
	return map[string]any{"verdict": v["verdict"], "checkPass": v["checkPass"], "allFinish": v["allFinish"], "rules": len(rules)}
}

func TestASynchronousCheckTimesOutUnlessARuleMatchesIt(t *testing.T) {
	const failRule = `{"verdict":"fail","rules":[{"name":"freeze","verdict":"FAIL","msg":"not on Friday"}]}`
	timedOut := map[string]any{"verdict": "pass", "checkPass": true, "allFinish": true, "rules": 0}
	for name, tc := range map[string]struct {
		script string
		takes  time.Duration
		want   map[string]any
		state  State
	}{
		"without a script":                          {`{}`, time.Second, timedOut, PreTimeout},
		"a default does not match":                  {`{"default":{"verdict":"fail"}}`, time.Second, timedOut, PreTimeout},
		"a rule for all checks does not match":      {`{"checks":[{"then":` + failRule + `}]}`, time.Second, timedOut, PreTimeout},
		"a rule of another workload does not match": {`{"checks":[{"match":{"step":"RELEASE","workload":"db"},"then":` + failRule + `}]}`, time.Second, timedOut, PreTimeout},
		"pass":                       {`{"checks":[{"match":{"step":"RELEASE","namespace":"default"},"then":{"verdict":"pass"}}]}`, 0, map[string]any{"verdict": "pass", "checkPass": true, "allFinish": true, "rules": 1}, PreFinish},
		"pass without rules":         {`{"checks":[{"match":{"step":"RELEASE"},"then":{"verdict":"pass","noRules":true}}]}`, 0, map[string]any{"verdict": "pass", "checkPass": true, "allFinish": true, "rules": 0}, PreFinish},
		"fail":                       {`{"checks":[{"match":{"step":"RELEASE","workload":"web"},"then":` + failRule + `}]}`, 0, map[string]any{"verdict": "fail", "checkPass": false, "allFinish": true, "rules": 1}, PreFinish},
		"inconc":                     {`{"checks":[{"match":{"step":"RELEASE"},"then":{"verdict":"inconc"}}]}`, 0, map[string]any{"verdict": "inconc", "checkPass": false, "allFinish": true, "rules": 1}, PreFinish},
		"shortly before the timeout": {`{"checks":[{"match":{"step":"RELEASE"},"then":{"verdict":"fail","delay":"999ms"}}]}`, 999 * time.Millisecond, map[string]any{"verdict": "fail", "checkPass": false, "allFinish": true, "rules": 1}, PreFinish},
		"after the timeout":          {`{"checks":[{"match":{"step":"RELEASE"},"then":{"verdict":"fail","delay":"5s"}}]}`, time.Second, timedOut, PreTimeout},
		"the script has a timeout":   {`{"checkTimeout":"10ms","checks":[{"match":{"step":"RELEASE"},"then":{"verdict":"fail","delay":"10ms"}}]}`, 10 * time.Millisecond, timedOut, PreTimeout},
		"never":                      {`{"checks":[{"match":{"step":"RELEASE"},"then":{"verdict":"fail","never":true}}]}`, time.Second, timedOut, PreTimeout},
		"an exception is a pass":     {`{"checks":[{"match":{"step":"RELEASE"},"then":{"verdict":"fail","ending":"exception"}}]}`, 0, timedOut, PreFail},
	} {
		t.Run(name, func(t *testing.T) {
			f := newReleaseFixture(t)
			f.setScript(t, tc.script)
			got := f.checked(t, tc.takes, nil)
			if diff := cmp.Diff(tc.want, got.verdict(t)); diff != "" {
				t.Errorf("%s: %s", diff, got.raw)
			}
			if state := f.state(got.node()); state != tc.state {
				t.Errorf("the node is in %s", state)
			}
			if got := len(f.bodies(t)); got != 0 {
				t.Errorf("%d callbacks", got)
			}
		})
	}
}

func TestOnlyASceneOfGeneration1IsCheckedSynchronously(t *testing.T) {
	f := newReleaseFixture(t)
	for scene, code := range map[string]string{"scene": "103", "none": "101"} {
		got := f.checked(t, 0, map[string]any{"changeSceneKey": scene})
		if got.code() != code {
			t.Errorf("%s: %s", scene, got.raw)
		}
	}
	if got := f.Orders(); len(got) != 0 {
		t.Errorf("a rejected check created %v", got)
	}
}

func TestARepeatedSynchronousCheckHasTheSameNode(t *testing.T) {
	f := newReleaseFixture(t)
	f.setScript(t, `{"checks":[{"match":{"step":"RELEASE"},"nth":1,"then":{"verdict":"fail"}},{"match":{"step":"RELEASE"},"then":{"verdict":"pass"}}]}`)
	first := f.checked(t, 0, nil)
	second := f.checked(t, 0, nil)
	if first.node() != second.node() || first.verdict(t)["verdict"] != "fail" || second.verdict(t)["verdict"] != "pass" {
		t.Errorf("%s, then %s", first.raw, second.raw)
	}
	if got := f.Orders(); len(got) != 1 {
		t.Errorf("%v", got)
	}
}

func TestRetrieveReturnsPassAfterACompletedSynchronousCheck(t *testing.T) {
	for script, want := range map[string]any{
		`{"checks":[{"match":{"step":"RELEASE"},"then":{"verdict":"fail"}}]}`:                      "pass",
		`{"checks":[{"match":{"step":"RELEASE"},"then":{"verdict":"fail","ending":"exception"}}]}`: "fail",
	} {
		f := newReleaseFixture(t)
		f.setScript(t, script)
		node := f.checked(t, 0, nil).node()
		got := f.call(t, actionRetrieve, nodeBody(node, map[string]any{"defenseStage": "PRE", "changeSceneKey": releaseScene}))
		verdict, _ := got.result.Domain["verdict"].(map[string]any)
		if verdict["verdict"] != want {
			t.Errorf("%s: %s", script, got.raw)
		}
	}
}
