package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge"
	"github.com/breakwater-dev/breakwater/judge/prometheus"
	"github.com/breakwater-dev/breakwater/test/freeport"
)

const ready = 1_760_000_000

// openMetrics returns the requests of pods of some versions: v2 fails 7 % of its requests. The pods of
// v5 and v6 have restarted before their first sample: those of v5 are new, those of v6 of last week.
func openMetrics() string {
	var b strings.Builder
	_, _ = fmt.Fprintln(&b, "# TYPE http_requests counter")
	for _, v := range []struct {
		version    string
		from, fail int
	}{{"v1", -600, 1}, {"v2", -15, 70}, {"v3", -15, 1}, {"v5", -15, 1}, {"v6", -600, 1}} {
		for pod := range 2 {
			n := 0
			for t := v.from; t <= 330; t += 15 {
				n++
				_, _ = fmt.Fprintf(&b, "http_requests_total{pod=\"%s-%d\",version=\"%s\",code=\"200\"} %d %d\n", v.version, pod, v.version, n*300-n*300*v.fail/1000, ready+t)
				_, _ = fmt.Fprintf(&b, "http_requests_total{pod=\"%s-%d\",version=\"%s\",code=\"500\"} %d %d\n", v.version, pod, v.version, n*300*v.fail/1000, ready+t)
			}
		}
	}
	for _, m := range []struct {
		kind, name string
		value      map[string]int
	}{
		{"counter", "kube_pod_container_status_restarts_total", map[string]int{"v1": 0, "v5": 2, "v6": 2}},
		{"gauge", "kube_pod_created", map[string]int{"v1": ready - 86400, "v5": ready - 45, "v6": ready - 604800}},
	} {
		_, _ = fmt.Fprintf(&b, "# TYPE %s %s\n", strings.TrimSuffix(m.name, "_total"), m.kind)
		for _, version := range []string{"v1", "v5", "v6"} {
			from := map[string]int{"v1": -600, "v5": -15, "v6": -600}[version]
			for t := from; t <= 330; t += 15 {
				_, _ = fmt.Fprintf(&b, "%s{pod=\"%s-0\",version=\"%s\",container=\"app\"} %d %d\n", m.name, version, version, m.value[version], ready+t)
			}
		}
	}
	_, _ = fmt.Fprintln(&b, "# EOF")
	return b.String()
}

// webConfig requires basic authentication of user reader. The hash is that of "password".
const webConfig = "basic_auth_users: {reader: $2a$04$kHQwpoRfL9wnHENXcM2dfeBUKSdnVemezxbPagbSPuFabMEgjPLi2}\n"

// startPrometheus starts a Prometheus that has the series and returns its URL, with user and password.
func startPrometheus(t *testing.T) string {
	t.Helper()
	for _, program := range []string{"prometheus", "promtool"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("needs %s: apt-get install prometheus", program)
		}
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "series.om")
	if err := os.WriteFile(file, []byte(openMetrics()), 0o600); err != nil {
		t.Fatal(err)
	}
	web := filepath.Join(dir, "web.yml")
	if err := os.WriteFile(web, []byte(webConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "promtool", "tsdb", "create-blocks-from", "openmetrics", file, dir).CombinedOutput(); err != nil {
		t.Fatalf("promtool: %v: %s", err, out)
	}
	port, err := freeport.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	url := "http://reader:password@" + address
	ctx, cancel := context.WithCancel(context.Background())
	server := exec.CommandContext(ctx, "prometheus", "--config.file=/dev/null", "--web.config.file="+web, "--storage.tsdb.path="+dir,
		"--storage.tsdb.retention.time=100y", "--web.listen-address="+address, "--log.level=error")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = server.Wait()
	})
	for deadline := time.Now().Add(time.Minute); ; {
		resp, err := http.Get(url + "/-/ready")
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return url
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("Prometheus is not ready: %v", err)
		}
	}
}

func TestAReplayOfAPastReleaseIsJudgedExplainedAndCounted(t *testing.T) {
	url := startPrometheus(t)
	replayOf := func(version string) []string {
		return []string{"replay", "--prometheus", url, "--new", `version="` + version + `"`, "--old", `version="v1"`, "--at", fmt.Sprint(ready)}
	}
	var out, errs bytes.Buffer
	if code := run(t.Context(), replayOf("v2"), &out, &errs); code != exitFail {
		t.Fatalf("exit code %d, want 1: %s%s", code, out.String(), errs.String())
	}
	var record v1alpha1.Record
	if err := json.Unmarshal(out.Bytes(), &record); err != nil {
		t.Fatal(err)
	}
	if e := record.Metrics[0]; record.Looks > 3 || e.Name != "requests-errors" || e.New == nil || e.Old == nil || e.ConfidenceInterval == nil ||
		e.New.Query != `http_requests_total{version="v2"}` || e.Threshold == "" {
		t.Errorf("a fail without its evidence: %+v", record)
	}

	file := filepath.Join(t.TempDir(), "record.json")
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if code := run(t.Context(), []string{"explain", "--prometheus", url, "--record", file}, &out, &errs); code != exitPass {
		t.Errorf("explain: exit code %d, want 0: %s%s", code, out.String(), errs.String())
	}

	for _, version := range []string{"v2", "v3"} {
		explainProbation(t, url, version)
	}

	restartsAreCounted(t, url, replayOf)

	if code := run(t.Context(), replayOf("v3"), &out, &errs); code != exitPass {
		t.Errorf("v3: exit code %d, want 0", code)
	}
	if code := run(t.Context(), replayOf("v4"), &out, &errs); code != exitNoVerdict {
		t.Errorf("v4: exit code %d, want 2", code)
	}

	list := filepath.Join(t.TempDir(), "list.csv")
	text := fmt.Sprintf("new,old,at,check,label\n\"version=\"\"v2\"\"\",\"version=\"\"v1\"\"\",%d,,bad\n\"version=\"\"v3\"\"\",\"version=\"\"v1\"\"\",%d,,good\n", ready, ready)
	if err := os.WriteFile(list, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if code := run(t.Context(), []string{"calibrate", "--prometheus", url, "--list", list, "--json"}, &out, &errs); code != exitPass {
		t.Fatalf("calibrate: exit code %d: %s", code, errs.String())
	}
	var score struct{ Caught, FalsePositives int }
	if err := json.Unmarshal(out.Bytes(), &score); err != nil || score.Caught != 1 || score.FalsePositives != 0 {
		t.Errorf("calibrate: %+v, %v, want one caught and no false positive", score, err)
	}
}

// restartsAreCounted replays releases whose restarts are older than the first sample, and explains the
// records.
func restartsAreCounted(t *testing.T, url string, replayOf func(version string) []string) {
	t.Helper()
	for version, want := range map[string]int{"v5": exitFail, "v6": exitPass} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), replayOf(version), &out, &errs); code != want {
			t.Errorf("%s: exit code %d, want %d: %s%s", version, code, want, out.String(), errs.String())
		}
		file := filepath.Join(t.TempDir(), version+".json")
		if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		if code := run(t.Context(), []string{"explain", "--prometheus", url, "--record", file}, &out, &errs); code != exitPass {
			t.Errorf("%s: explain: exit code %d, want 0: %s%s", version, code, out.String(), errs.String())
		}
	}
}

// explainProbation explains the record of a look during probation, which began a minute after the
// release.
func explainProbation(t *testing.T, url, version string) {
	t.Helper()
	client, err := prometheus.New(url, prometheus.DefaultTimeout, nil)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Unix(ready, 0)
	record, err := json.Marshal(judge.LookDuringProbation(t.Context(), client, judge.ProbationLook{
		Target:  v1alpha1.Target{New: `version="` + version + `"`, Old: `version="v1"`, StartTime: metav1.NewTime(start)},
		Success: start.Add(time.Minute), End: start.Add(time.Hour),
	}, start.Add(5*time.Minute)))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "probation.json")
	if err := os.WriteFile(file, record, 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"explain", "--prometheus", url, "--record", file}, &out, &errs); code != exitPass ||
		!strings.Contains(out.String(), "2025-10-09T08:54:20Z to 2025-10-09T08:58:20Z") {
		t.Errorf("explain a look at %s during probation: exit code %d, want 0 and its range: %s%s", version, code, out.String(), errs.String())
	}
}

func TestQueriesHaveTheHeadersOfTheFlags(t *testing.T) {
	var served atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Scope-OrgID") != "team-a" || strings.Join(r.Header["X-Source"], " ") != "judge replay" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		served.Add(1)
		_, _ = w.Write([]byte(`{"status":"success","data":{"resultType":"matrix","result":[]}}`))
	}))
	defer server.Close()
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"replay", "--prometheus", server.URL,
		"--header", "X-Scope-OrgID: team-a", "--header", "X-Source: judge", "--header", "X-Source: replay", "--new", `a="b"`, "--old", `a="c"`, "--at", fmt.Sprint(ready)}, &out, &errs)
	if code != exitNoVerdict || served.Load() == 0 || strings.Contains(out.String()+errs.String(), "401") {
		t.Errorf("exit code %d after %d answers, want 2: %s%s", code, served.Load(), out.String(), errs.String())
	}
}

func TestWrongFlagsAndFilesExitWith3AndAreNamed(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	with := func(more ...string) []string {
		return append([]string{"replay", "--prometheus", "http://127.0.0.1:1", "--new", `a="b"`, "--old", `a="c"`, "--at", "1760000000"}, more...)
	}
	const head = "apiVersion: judge.breakwater.dev/v1alpha1\nkind: MetricCheck\n"
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no command":          {nil, "usage"},
		"unknown command":     {[]string{"serv"}, "usage"},
		"credential":          {with("--header", "Authorization: Bearer hidden"), "header Authorization is not allowed"},
		"another placeholder": {with("--header", "X-Namespace: {{ns}}"), "--header: write the namespace itself"},
		"a placeholder":       {with("--header", "X-Namespace: {{namespace}}"), "--header: write the namespace itself"},
		"no header":           {with("--header", "X-Scope-OrgID: a", "--header", "hidden"), "--header: line 2: write a name and a value"},
		"wrong escape":        {with("--prometheus", "https://user:pa%zhidden@host"), "--prometheus: not an http or https URL"},
		"no server":           {[]string{"replay", "--new", `a="b"`, "--at", "1"}, "--prometheus"},
		"no new":              {[]string{"replay", "--prometheus", "http://x", "--at", "1"}, "new"},
		"wrong matcher":       {with("--new", "a=b"), "a=b"},
		"wrong time":          {with("--at", "yesterday"), "yesterday"},
		"unknown flag":        {with("--nwe", "x"), "nwe"},
		"argument":            {with("x"), `"x"`},
		"interval":            {with("--interval", "4s"), "want at least 5s"},
		"no file":             {with("--check", dir+"/none"), "none"},
		"unknown field":       {with("--check", write("a", head+"spec: {lok: 5m}")), "lok"},
		"wrong kind":          {with("--check", write("b", "kind: Deployment\n")), "Deployment"},
		"short analysis":      {with("--check", write("c", head+"spec: {analysisDuration: 1s}")), "spec.analysisDuration"},
		"no bad":              {with("--check", write("d", head+"spec: {metrics: [{name: a, kind: Ratio, query: 'x{{{pods}}}'}]}")), "spec.metrics[0].bad"},
		"wrong label":         {[]string{"calibrate", "--prometheus", "http://x", "--list", write("e", "new,old,at,check,label\na,b,1,,ugly\n")}, "ugly"},
		"wrong header":        {[]string{"calibrate", "--prometheus", "http://x", "--list", write("f", "new,old,at,label\n")}, "check"},
		"no record":           {[]string{"explain", "--prometheus", "http://x", "--record", write("g", "{}")}, "target"},
	} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), c.args, &out, &errs); code != exitError || !strings.Contains(errs.String(), c.want) || strings.Contains(errs.String(), "hidden") {
			t.Errorf("%s: exit code %d, error %q, want 3, %q and no secret", name, code, errs.String(), c.want)
		}
	}
}
