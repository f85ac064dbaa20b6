package metrics

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const root = "../.."

var (
	metricName = regexp.MustCompile(`\bbreakwater_[a-z_]*[a-z]\b`)
	// created is a call that creates an instrument without a definition.
	created = regexp.MustCompile(`\.(Int64|Float64)(Observable)?(Counter|UpDownCounter|Gauge|Histogram)\(|prometheus\.New(Counter|Gauge|Histogram|Summary|Desc)\w*\(`)
	// dotted is the name of a metric that no scrape shows; event types begin with dev.
	dotted = regexp.MustCompile("permissioncentre_\\w+|`breakwater\\.[a-z.]+`")
	// released are files of a release, which look like it.
	released = regexp.MustCompile("`breakwater(\\.krew)?\\.yaml`")
	// suffix is what a scrape adds to a histogram.
	suffix = regexp.MustCompile(`_(bucket|sum|count)$`)
)

func TestEveryMetricIsDefinedAndUsed(t *testing.T) {
	all, used := definitions(), map[string]bool{}
	for file, text := range texts(t, ".go") {
		product := !strings.HasSuffix(file, "_test.go") && !strings.HasPrefix(file, "test/")
		for _, name := range metricName.FindAllString(text, -1) {
			if _, ok := all[name]; !ok {
				t.Errorf("%s names %s, which is not defined", file, name)
			}
			used[name] = used[name] || product
		}
		// The permission centre has a Prometheus registry of its own.
		if product && file != "permission/centre/metrics.go" && created.MatchString(text) {
			t.Errorf("%s creates an instrument without this package: %s", file, created.FindString(text))
		}
	}
	for name := range all {
		if !used[name] {
			t.Errorf("%s is defined and no product code creates it", name)
		}
	}
}

func TestPagesAndManifestsNameMetricsThatExist(t *testing.T) {
	all := definitions()
	for file, text := range texts(t, ".md", ".yaml", ".sh") {
		for _, name := range metricName.FindAllString(text, -1) {
			_, ok := all[name]
			if d, histogram := all[suffix.ReplaceAllString(name, "")]; !ok && (!histogram || d.Type() != TypeHistogram) {
				t.Errorf("%s names %s, which is not defined", file, name)
			}
		}
		if old := dotted.FindString(released.ReplaceAllString(text, "")); old != "" {
			t.Errorf("%s names %s: write the name of a scrape", file, old)
		}
	}
}

var (
	quoted    = regexp.MustCompile(`"[^"]*"`)
	matcher   = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)\s*"`)
	grouping  = regexp.MustCompile(`\b(?:by|without|on|ignoring)\s*\(([^)]*)\)`)
	selectors = regexp.MustCompile(`\{[^}]*\}`)
	ranges    = regexp.MustCompile(`\[[^\]]*\]`)
	operand   = regexp.MustCompile(`\b[a-zA-Z_]\w*\b\s*\(?`)
	mentioned = regexp.MustCompile(`\$labels\.(\w+)`)
)

func TestAlertsUseMetricsAndLabelsThatExist(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "config/monitoring/*-rules-*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal("no alerts", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var rule struct {
			Spec struct {
				Groups []struct {
					Rules []struct {
						Alert, Expr string
						Annotations map[string]string
					}
				}
			}
		}
		if err := yaml.Unmarshal(raw, &rule); err != nil {
			t.Fatal(err)
		}
		for _, g := range rule.Spec.Groups {
			for _, r := range g.Rules {
				for _, problem := range problems(r.Expr, r.Annotations) {
					t.Errorf("alert %s: %s", r.Alert, problem)
				}
			}
		}
	}
}

// problems returns what is wrong with the metrics and labels of an alert.
func problems(expr string, annotations map[string]string) []string {
	var found, used, grouped []string
	// Prometheus adds the labels of the target.
	known, all := []string{"pod", "namespace", "instance", "job", "le"}, definitions()
	bare := expr
	for _, part := range []*regexp.Regexp{selectors, grouping, ranges, quoted} {
		bare = part.ReplaceAllString(bare, "")
	}
	for _, word := range operand.FindAllString(bare, -1) {
		word = strings.TrimSpace(word)
		if strings.HasSuffix(word, "(") || slices.Contains([]string{"and", "or", "unless", "offset", "bool"}, word) {
			continue
		}
		d, ok := all[word]
		if histogram := all[suffix.ReplaceAllString(word, "")]; !ok && histogram.Type() == TypeHistogram {
			d, ok = histogram, true
		}
		if !ok {
			found = append(found, "metric "+word+" is not defined")
		}
		known = append(known, d.Labels...)
	}
	for _, m := range grouping.FindAllStringSubmatch(expr, -1) {
		grouped = append(grouped, strings.FieldsFunc(m[1], func(c rune) bool { return c == ',' || c == ' ' })...)
	}
	for _, m := range matcher.FindAllStringSubmatch(expr, -1) {
		used = append(used, m[1])
	}
	for _, label := range append(used, grouped...) {
		if !slices.Contains(known, label) {
			found = append(found, "label "+label+" does not exist")
		}
	}
	for _, text := range annotations {
		for _, m := range mentioned.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(grouped, m[1]) {
				found = append(found, "label "+m[1]+" of an annotation is not in the result")
			}
		}
	}
	return found
}

func TestAnAlertWithAnUnknownMetricOrLabelIsFound(t *testing.T) {
	for expr, want := range map[string]int{
		`sum by (reason) (increase(breakwater_permission_sets_leaked_total[1h])) > 0`:   0,
		`histogram_quantile(0.9, breakwater_release_check_duration_seconds_bucket) > 1`: 0,
		`max(breakwater_invented) > 0`:                                                                    1,
		`breakwater_pods_finished_total_bucket > 0`:                                                       1,
		`sum by (why) (breakwater_rollbacks_total) > 0`:                                                   1,
		`breakwater_admission_requests_total{webhook=~"v.*",fate!="x"} > 0`:                               1,
		`absent(breakwater_guard_unenforced) or breakwater_deletionflow_breaker_open{name="a"} offset 5m`: 0,
	} {
		if got := problems(expr, nil); len(got) != want {
			t.Errorf("%s: %q, want %d problems", expr, got, want)
		}
	}
}

func definitions() map[string]Definition {
	all := map[string]Definition{}
	for _, g := range Groups() {
		for _, d := range g.Metrics {
			all[d.Name] = d
		}
	}
	return all
}

// texts returns the files with these extensions, except those of this package.
func texts(t *testing.T, extensions ...string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && (strings.HasPrefix(entry.Name(), ".") || slices.Contains([]string{"client", "bin", "internal/metrics"}, path)):
			return fs.SkipDir
		case entry.IsDir() || !slices.Contains(extensions, filepath.Ext(path)):
			return nil
		}
		raw, err := os.ReadFile(filepath.Join(root, path))
		found[path] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
