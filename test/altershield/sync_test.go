package altershield

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// releaseScene is the scene of generation 1.
const releaseScene = "release"

func newReleaseBench(t *testing.T) *bench {
	t.Helper()
	return newBench(t, func(o *Options) { o.Scene, o.Generation1Scene = "scene", releaseScene })
}

// checked calls the synchronous check and advances the clock by its duration.
func (b *bench) checked(t *testing.T, takes time.Duration, more map[string]any) answer {
	t.Helper()
	fields := map[string]any{
		"changeSceneKey": releaseScene, "checkTimeout": 1000,
		"changeParamJson": `{"namespace":"default","workloadName":"web"}`,
	}
	for key, value := range more {
		fields[key] = value
	}
	came := make(chan answer)
	go func() { came <- b.call(t, actionSyncStart, orderBody(fields)) }()
	if takes > 0 {
		b.step(t, takes)
	}
	select {
	case a := <-came:
		return a
	case <-time.After(10 * time.Second):
		t.Fatalf("no answer after %s", takes)
		return answer{}
	}
}

// said returns the decisive fields of the verdict of a synchronous check.
func (a answer) said(t *testing.T) map[string]any {
	t.Helper()
	v, _ := a.result.Domain["verdict"].(map[string]any)
	if a.code() != "000" || v == nil {
		t.Fatal(a.raw)
	}
	rules, _ := v["rules"].([]any)
	return map[string]any{"verdict": v["verdict"], "checkPass": v["checkPass"], "allFinish": v["allFinish"], "rules": len(rules)}
}

func TestASynchronousCheckTimesOutWithoutARuleForIt(t *testing.T) {
	const failRule = `{"verdict":"fail","rules":[{"name":"freeze","verdict":"FAIL","msg":"not on Friday"}]}`
	timedOut := map[string]any{"verdict": "pass", "checkPass": true, "allFinish": true, "rules": 0}
	for name, tc := range map[string]struct {
		script string
		takes  time.Duration
		want   map[string]any
		state  State
	}{
		"without a script":            {`{}`, time.Second, timedOut, PreTimeout},
		"a default is not meant":      {`{"default":{"verdict":"fail"}}`, time.Second, timedOut, PreTimeout},
		"a rule for all is not meant": {`{"checks":[{"then":` + failRule + `}]}`, time.Second, timedOut, PreTimeout},
		"another workload's is not":   {`{"checks":[{"match":{"step":"RELEASE","workload":"db"},"then":` + failRule + `}]}`, time.Second, timedOut, PreTimeout},
		"pass":                        {`{"checks":[{"match":{"step":"RELEASE","namespace":"default"},"then":{"verdict":"pass"}}]}`, 0, map[string]any{"verdict": "pass", "checkPass": true, "allFinish": true, "rules": 1}, PreFinish},
		"pass without rules":          {`{"checks":[{"match":{"step":"RELEASE"},"then":{"verdict":"pass","noRules":true}}]}`, 0, map[string]any{"verdict": "pass", "checkPass": true, "allFinish": true, "rules": 0}, PreFinish},
		"fail":                        {`{"checks":[{"match":{"step":"RELEASE","workload":"web"},"then":` + failRule + `}]}`, 0, map[string]any{"verdict": "fail", "checkPass": false, "allFinish": true, "rules": 1}, PreFinish},
		"a word":                      {`{"checks":[{"match":{"step":"RELEASE"},"then":{"verdict":"inconc"}}]}`, 0, map[string]any{"verdict": "inconc", "checkPass": false, "allFinish": true, "rules": 1}, PreFinish},
		"late, and in time":           {`{"checks":[{"match":{"step":"RELEASE"},"then":{"verdict":"fail","delay":"999ms"}}]}`, 999 * time.Millisecond, map[string]any{"verdict": "fail", "checkPass": false, "allFinish": true, "rules": 1}, PreFinish},
		"too late":                    {`{"checks":[{"match":{"step":"RELEASE"},"then":{"verdict":"fail","delay":"5s"}}]}`, time.Second, timedOut, PreTimeout},
		"never":                       {`{"checks":[{"match":{"step":"RELEASE"},"then":{"verdict":"fail","never":true}}]}`, time.Second, timedOut, PreTimeout},
		"an exception is a pass, too": {`{"checks":[{"match":{"step":"RELEASE"},"then":{"verdict":"fail","ending":"exception"}}]}`, 0, timedOut, PreFail},
	} {
		t.Run(name, func(t *testing.T) {
			b := newReleaseBench(t)
			b.put(t, tc.script)
			got := b.checked(t, tc.takes, nil)
			if diff := cmp.Diff(tc.want, got.said(t)); diff != "" {
				t.Errorf("%s: %s", diff, got.raw)
			}
			if state := b.state(got.node()); state != tc.state {
				t.Errorf("the node is in %s", state)
			}
			if got := len(b.bodies(t)); got != 0 {
				t.Errorf("%d callbacks", got)
			}
		})
	}
}

func TestOnlyASceneOfGeneration1IsCheckedSynchronously(t *testing.T) {
	b := newReleaseBench(t)
	for scene, code := range map[string]string{"scene": "103", "none": "101"} {
		got := b.checked(t, 0, map[string]any{"changeSceneKey": scene})
		if got.code() != code {
			t.Errorf("%s: %s", scene, got.raw)
		}
	}
	if got := b.Orders(); len(got) != 0 {
		t.Errorf("a refusal has left %v", got)
	}
}

func TestARepeatedSynchronousCheckHasTheSameNode(t *testing.T) {
	b := newReleaseBench(t)
	b.put(t, `{"checks":[{"match":{"step":"RELEASE"},"nth":1,"then":{"verdict":"fail"}},{"match":{"step":"RELEASE"},"then":{"verdict":"pass"}}]}`)
	first := b.checked(t, 0, nil)
	second := b.checked(t, 0, nil)
	if first.node() != second.node() || first.said(t)["verdict"] != "fail" || second.said(t)["verdict"] != "pass" {
		t.Errorf("%s, then %s", first.raw, second.raw)
	}
	if got := b.Orders(); len(got) != 1 {
		t.Errorf("%v", got)
	}
}

func TestRetrieveReturnsPassAfterACompletedSynchronousCheck(t *testing.T) {
	for script, want := range map[string]any{
		`{"checks":[{"match":{"step":"RELEASE"},"then":{"verdict":"fail"}}]}`:                      "pass",
		`{"checks":[{"match":{"step":"RELEASE"},"then":{"verdict":"fail","ending":"exception"}}]}`: "fail",
	} {
		b := newReleaseBench(t)
		b.put(t, script)
		node := b.checked(t, 0, nil).node()
		got := b.call(t, actionRetrieve, nodeBody(node, map[string]any{"defenseStage": "PRE", "changeSceneKey": releaseScene}))
		said, _ := got.result.Domain["verdict"].(map[string]any)
		if said["verdict"] != want {
			t.Errorf("%s: %s", script, got.raw)
		}
	}
}
