package judge

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/catalog"
	"github.com/breakwater-dev/breakwater/judge/evaluate"
	"github.com/breakwater-dev/breakwater/judge/prometheus"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

const (
	// parallel is the maximum number of concurrent queries of one look.
	parallel = 4
	// discoveryStep is the resolution at which the names of series are searched.
	discoveryStep = time.Minute
	step          = prometheus.Step
	placeholder   = "{{pods}}"
)

// source reads the samples of one target.
type source struct {
	// reader names the pods by the label that selects them. Anonymous names them by the first known label.
	reader, anonymous Reader

	target   v1alpha1.Target
	new, old prometheus.Matchers
	// both matches new and old pods, if one matcher can match both.
	both prometheus.Matchers
	// referenceBefore is true if the reference is what new matches, before the change: old is
	// empty or the same.
	referenceBefore bool
	from, to        time.Time
}

// read returns the samples that a verdict depends on, until time to.
func read(ctx context.Context, reader Reader, check v1alpha1.MetricCheckSpec, target v1alpha1.Target, to time.Time) evaluate.Input {
	in := evaluate.Input{Check: check, Target: target, Nodes: map[string]string{}}
	s, err := newSource(reader, target, to)
	if err != nil {
		in.Err = err
		return in
	}
	metrics, err := s.metrics(ctx, check)
	if err != nil {
		in.Err = err
		return in
	}
	in.Metrics = slices.DeleteFunc(readEach(ctx, metrics, s.metric), withoutSeries)
	addRequests(in.Metrics)
	if check.DefaultMetrics != v1alpha1.DiscoverNone && check.Callers != v1alpha1.DiscoverNone && !replaced(check, catalog.ServiceGraph()) {
		in.Metrics = append(in.Metrics, s.callers(ctx, in.Metrics)...)
	}
	for _, d := range in.Metrics {
		for _, series := range [][]samples.Series{d.New.All, d.Old.All} {
			for _, one := range series {
				if node := samples.Node(one.Labels); node != "" {
					in.Nodes[samples.Pod(one.Labels)] = node
				}
			}
		}
	}
	return in
}

// metrics returns the metrics of the check, and the default metrics whose series exist.
func (s source) metrics(ctx context.Context, check v1alpha1.MetricCheckSpec) ([]catalog.Metric, error) {
	metrics := custom(check)
	if check.DefaultMetrics == v1alpha1.DiscoverNone {
		return metrics, nil
	}
	found, err := s.discover(ctx)
	if err != nil {
		return nil, fmt.Errorf("discover series: %w", err)
	}
	return add(metrics, catalog.Resolve(found)), nil
}

// readEach reads the series of metrics, at most parallel at a time.
func readEach(ctx context.Context, metrics []catalog.Metric, read func(context.Context, catalog.Metric) evaluate.Data) []evaluate.Data {
	out := make([]evaluate.Data, len(metrics))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, m := range metrics {
		group.Go(func() error {
			out[i] = read(groupCtx, m)
			return nil
		})
	}
	_ = group.Wait()
	return out
}

// withoutSeries reports whether a default metric does not apply to the pods: its series exist, but neither side has
// those that its matchers select. For example, pods that only make calls have no series of incoming requests, and the HTTP
// client of queue-proxy is not that of the application. If one side has series, or the day before had, the new version may
// be the reason that others are missing.
func withoutSeries(d evaluate.Data) bool {
	if d.Signal == catalog.Custom || d.Err != nil {
		return false
	}
	if len(d.New.All)+len(d.Old.All)+len(d.Day.All) == 0 {
		return true
	}
	_, among := subset(d.Query, d.Bad)
	return d.Bad != "" && !among && len(d.New.Bad)+len(d.Old.Bad)+len(d.Day.Bad) == 0
}

// addRequests adds the requests of the pods to the metrics that depend on them: those of the
// first metric that has series of new and of old pods.
func addRequests(metrics []evaluate.Data) {
	for _, requests := range metrics {
		if requests.Signal != catalog.Errors || requests.Kind != v1alpha1.KindRatio || requests.Err != nil ||
			len(requests.New.All) == 0 || len(requests.Old.All) == 0 {
			continue
		}
		for i := range metrics {
			if m := &metrics[i]; m.PerRequest {
				m.Requests.New, m.Requests.Old, m.Requests.Day = requests.New.All, requests.Old.All, requests.Day.All
			}
		}
		return
	}
}

func newSource(reader Reader, target v1alpha1.Target, to time.Time) (source, error) {
	s := source{reader: reader, anonymous: reader, target: target, from: target.StartTime.Add(-evaluate.ReferenceDuration), to: to}
	var err error
	if s.new, err = prometheus.ParseMatchers(target.New); err != nil {
		return s, fmt.Errorf("new: %w", err)
	}
	if len(s.new) == 0 {
		return s, errors.New("new: the matcher is empty")
	}
	if label := podLabel(target, s.new); label != "" {
		s.reader = namingReader{reader, label}
	}
	if s.old, err = prometheus.ParseMatchers(target.Old); err != nil {
		return s, fmt.Errorf("old: %w", err)
	}
	s.referenceBefore = len(s.old) == 0 || s.old.String() == s.new.String()
	if s.referenceBefore {
		s.both = s.new
	} else if both, ok := prometheus.Union(s.new, s.old); ok {
		s.both = both
	}
	return s, nil
}

// podLabel returns the label of series that names their pod: that of the target, or the known one that
// selects pods. "" if neither is known, for example if a version selects them.
func podLabel(target v1alpha1.Target, news prometheus.Matchers) string {
	if target.PodLabel != "" {
		return target.PodLabel
	}
	return samples.NameLabel(func(label string) bool {
		return slices.ContainsFunc(news, func(m prometheus.Matcher) bool { return m.Label == label && (m.Op == "=" || m.Op == "=~") })
	})
}

// namingReader returns series with the pods that a label names.
type namingReader struct {
	Reader
	label string
}

// Range implements Reader. Series that are shared are not modified.
func (r namingReader) Range(ctx context.Context, expression string, from, to time.Time, step time.Duration) ([]samples.Series, error) {
	series, err := r.Reader.Range(ctx, expression, from, to, step)
	return samples.Named(series, r.label), err
}

func custom(check v1alpha1.MetricCheckSpec) []catalog.Metric {
	var out []catalog.Metric
	for _, m := range check.Metrics {
		unit := map[v1alpha1.MetricKind]string{v1alpha1.KindRatio: "ratio", v1alpha1.KindCounter: "events per second"}[m.Kind]
		out = append(out, catalog.Metric{Metric: m, Signal: catalog.Custom, Unit: unit,
			WarmUp: m.Kind == v1alpha1.KindLatency || m.Kind == v1alpha1.KindGauge})
	}
	return out
}

// replaced reports whether a metric of the MetricCheck replaces a default metric.
func replaced(check v1alpha1.MetricCheckSpec, m catalog.Metric) bool {
	return slices.ContainsFunc(check.Metrics, func(own v1alpha1.Metric) bool { return own.Name == m.Name })
}

// add appends the default metrics that no metric of the MetricCheck replaces.
func add(metrics, defaults []catalog.Metric) []catalog.Metric {
	names := map[string]bool{}
	for _, m := range metrics {
		names[m.Name] = true
	}
	for _, m := range defaults {
		if !names[m.Name] {
			metrics = append(metrics, m)
		}
	}
	return metrics
}

// discover returns the names of the series of new and old pods, with the values
// of the labels that distinguish them.
func (s source) discover(ctx context.Context) ([]catalog.Found, error) {
	matchers := []prometheus.Matchers{s.both}
	if s.both == nil {
		matchers = []prometheus.Matchers{s.new, s.old}
	}
	byName := map[string]map[string]map[string]bool{}
	for _, m := range matchers {
		series, err := s.reader.Range(ctx, "count by ("+strings.Join(catalog.GroupLabels, ",")+") ({"+m.String()+"})", s.from, s.to, discoveryStep)
		if err != nil {
			return nil, err
		}
		for _, one := range series {
			if !catalog.LeftOut(one.Labels) {
				addLabels(byName, one.Labels)
			}
		}
	}
	var out []catalog.Found
	for _, name := range samples.Sorted(byName) {
		f := catalog.Found{Name: name, Labels: map[string][]string{}}
		for label, values := range byName[name] {
			f.Labels[label] = samples.Sorted(values)
		}
		out = append(out, f)
	}
	return out, nil
}

// addLabels adds the values of the labels of a series to those of its name.
func addLabels(byName map[string]map[string]map[string]bool, labels map[string]string) {
	name := labels["__name__"]
	if byName[name] == nil {
		byName[name] = map[string]map[string]bool{}
	}
	for label, value := range labels {
		if label == "__name__" {
			continue
		}
		if byName[name][label] == nil {
			byName[name][label] = map[string]bool{}
		}
		byName[name][label][value] = true
	}
}

// metric reads the series of one metric.
func (s source) metric(ctx context.Context, m catalog.Metric) evaluate.Data {
	d := evaluate.Data{Metric: m, ReferenceBefore: s.referenceBefore}
	d.NewQuery = strings.ReplaceAll(m.Query, placeholder, s.new.String())
	d.OldQuery = strings.ReplaceAll(m.Query, placeholder, s.old.String())
	if s.referenceBefore {
		d.OldQuery = d.NewQuery
	}
	if d.New.All, d.Old.All, d.Err = s.sides(ctx, m.Query); d.Err != nil {
		return d
	}
	if m.Bad != "" {
		if bad, ok := subset(m.Query, m.Bad); ok {
			d.New.Bad, d.Old.Bad = filter(d.New.All, bad), filter(d.Old.All, bad)
			if m.Signal == catalog.Custom && len(d.New.Bad)+len(d.Old.Bad) == 0 {
				d.MissingLabel = missingLabel(bad, slices.Concat(d.New.All, d.Old.All))
			}
		} else if d.New.Bad, d.Old.Bad, d.Err = s.sides(ctx, m.Bad); d.Err != nil {
			return d
		}
	}
	if m.Signal != catalog.Health && (s.referenceBefore || !alive(d.Old.All, s.target.StartTime.Time)) {
		s.day(ctx, m, &d)
	}
	return d
}

// sides reads an expression for new and old pods: with one query if one matcher
// selects both.
func (s source) sides(ctx context.Context, expression string) (news, olds []samples.Series, err error) {
	_, plain := prometheus.ParseSelector(strings.ReplaceAll(expression, placeholder, ""))
	with := func(m prometheus.Matchers) string { return strings.ReplaceAll(expression, placeholder, m.String()) }
	if s.referenceBefore || s.both != nil && plain {
		series, err := s.reader.Range(ctx, with(s.both), s.from, s.to, step)
		if err != nil || s.referenceBefore {
			return series, series, err
		}
		for _, one := range series {
			if s.new.Match(one.Labels) {
				news = append(news, one)
			}
			if s.old.Match(one.Labels) {
				olds = append(olds, one)
			}
		}
		return news, olds, nil
	}
	if news, err = s.reader.Range(ctx, with(s.new), s.from, s.to, step); err != nil {
		return nil, nil, err
	}
	olds, err = s.reader.Range(ctx, with(s.old), s.from, s.to, step)
	return news, olds, err
}

// day reads the same minutes of the day before. They may have no samples.
func (s source) day(ctx context.Context, m catalog.Metric, d *evaluate.Data) {
	matchers := s.old
	if s.referenceBefore {
		matchers = s.new
	}
	var err error
	d.Day, err = s.moved(ctx, m, matchers, s.target.StartTime.Add(-evaluate.DailyLead), s.to, evaluate.DailyOffset)
	if err != nil {
		d.Err = fmt.Errorf("day before: %w", err)
	}
}

// moved reads one side of a metric by some time earlier, and moves the samples by that time.
func (s source) moved(ctx context.Context, m catalog.Metric, matchers prometheus.Matchers, from, to time.Time, by time.Duration) (evaluate.Pair, error) {
	read := func(expression string) ([]samples.Series, error) {
		series, err := s.reader.Range(ctx, strings.ReplaceAll(expression, placeholder, matchers.String()), from.Add(-by), to.Add(-by), step)
		return samples.Moved(series, by.Seconds()), err
	}
	all, err := read(m.Query)
	if err != nil || m.Bad == "" {
		return evaluate.Pair{All: all}, err
	}
	if bad, ok := subset(m.Query, m.Bad); ok {
		return evaluate.Pair{All: all, Bad: filter(all, bad)}, nil
	}
	bad, err := read(m.Bad)
	return evaluate.Pair{All: all, Bad: bad}, err
}

// alive reports whether series have samples well after the change.
func alive(series []samples.Series, at time.Time) bool {
	limit := float64(at.Unix()) + 60
	for _, s := range series {
		if n := len(s.Points); n > 0 && s.Points[n-1].T > limit {
			return true
		}
	}
	return false
}

// subset returns matchers that bad combines with "or", if all of them select series of query.
func subset(query, bad string) ([]prometheus.Matchers, bool) {
	q, ok := prometheus.ParseSelector(strings.ReplaceAll(query, placeholder, ""))
	if !ok || q.Name == "" {
		return nil, false
	}
	var out []prometheus.Matchers
	for _, part := range strings.Split(bad, " or ") {
		b, ok := prometheus.ParseSelector(strings.ReplaceAll(part, placeholder, ""))
		if !ok || q.Name != b.Name {
			return nil, false
		}
		has := map[string]bool{}
		for _, m := range b.Matchers {
			has[m.String()] = true
		}
		if slices.ContainsFunc(q.Matchers, func(m prometheus.Matcher) bool { return !has[m.String()] }) {
			return nil, false
		}
		out = append(out, b.Matchers)
	}
	return out, true
}

// missingLabel returns a label that a series must have to match, and that none of the series has. "" if there
// is none, or no series.
func missingLabel(matchers []prometheus.Matchers, series []samples.Series) string {
	for _, m := range slices.Concat(matchers...) {
		if len(series) > 0 && !m.Matches(nil) && !slices.ContainsFunc(series, func(s samples.Series) bool { return s.Labels[m.Label] != "" }) {
			return m.Label
		}
	}
	return ""
}

// filter returns the series that one of the matchers selects.
func filter(series []samples.Series, matchers []prometheus.Matchers) []samples.Series {
	var out []samples.Series
	for _, s := range series {
		if slices.ContainsFunc(matchers, func(m prometheus.Matchers) bool { return m.Match(s.Labels) }) {
			out = append(out, s)
		}
	}
	return out
}

// callers reads the failed requests that the callers of the pods count, where a
// service graph exists: by called pod if the series have one, otherwise before and after
// the change.
func (s source) callers(ctx context.Context, metrics []evaluate.Data) []evaluate.Data {
	// The label that names a pod of the service names the caller in a service graph.
	byPod := s
	byPod.both, byPod.reader = nil, s.anonymous
	servers, known := serviceNames(metrics)
	var okNew, okOld bool
	byPod.new, okNew = called(s.new, servers)
	byPod.old, okOld = called(s.old, servers)
	if okNew && (okOld || s.referenceBefore) {
		if s.referenceBefore {
			byPod.both = byPod.new
		} else if both, ok := prometheus.Union(byPod.new, byPod.old); ok {
			byPod.both = both
		}
		if d := byPod.metric(ctx, catalog.ServiceGraph()); d.Err != nil || len(d.New.All)+len(d.Old.All) > 0 {
			return []evaluate.Data{d}
		}
	}
	if !known {
		return nil
	}
	servers = append(namespaces(s.new), servers...)
	byService := s
	byService.reader = s.anonymous
	byService.new, byService.old, byService.both, byService.referenceBefore = servers, servers, servers, true
	d := byService.metric(ctx, catalog.ServiceGraph())
	if d.Err == nil && len(d.New.All) == 0 {
		return nil
	}
	return []evaluate.Data{d}
}

// called returns matchers of the called pods of a service graph, and false if
// no condition distinguishes pods. Conditions on namespaces are kept: pods of another
// namespace may have the same names. Pods of other services may have the same version, so without a
// condition on names the servers are one, too.
func called(m, servers prometheus.Matchers) (out prometheus.Matchers, ok bool) {
	named := false
	for _, one := range m {
		if name := catalog.CalledPod[one.Label]; name != "" {
			named = named || name == catalog.CalledPodName
			one.Label, ok = name, true
			out = append(out, one)
		}
	}
	if !named {
		out, ok = append(out, servers...), ok && len(servers) > 0
	}
	return append(out, namespaces(m)...), ok
}

// namespaces returns the conditions on the namespace of the called pods. They also match series
// without one: not every service graph has it, and a service of the same name in
// another namespace is another service.
func namespaces(m prometheus.Matchers) prometheus.Matchers {
	var out prometheus.Matchers
	for _, one := range m {
		if slices.Contains(catalog.NamespaceLabels, one.Label) {
			ofCalled := one
			ofCalled.Label = catalog.CalledNamespace
			out = append(out, one.OrEmpty(), ofCalled.OrEmpty())
		}
	}
	return out
}

// serviceNames returns a matcher of the service's name, from the labels of its series.
func serviceNames(metrics []evaluate.Data) (prometheus.Matchers, bool) {
	names := map[string]bool{}
	for _, d := range metrics {
		for _, one := range d.New.All {
			for _, label := range []string{"service_name", "service", "app", "exported_job"} {
				if v := one.Labels[label]; v != "" && len(names) < 8 {
					names[regexp.QuoteMeta(v)] = true
				}
			}
		}
	}
	if len(names) == 0 {
		return nil, false
	}
	m, err := prometheus.ParseMatchers(fmt.Sprintf("server=~%q", strings.Join(samples.Sorted(names), "|")))
	return m, err == nil
}
