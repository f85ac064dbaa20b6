package changeworkload

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	judgev1alpha1 "github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// defaultAnalysisDuration is the analysisDuration of a MetricCheck that has none.
const defaultAnalysisDuration = 5 * time.Minute

// judgesOf returns the judges of a new batch, or nil if the server alone judges it. Each
// configured judge must answer; if the setting judges names some, only these must. If it
// names only judges that are not configured, each configured judge must answer. failed are the failed versions.
func judgesOf(in Input, check *judgev1alpha1.MetricCheck, failed []string) []v1alpha1.Judge {
	named := in.Settings.Judges
	optional := func(name string) bool { return len(named) > 0 && !slices.Contains(named, name) }
	var out []v1alpha1.Judge
	// A rollback has no metric judge: its pods would be compared with the bad ones. Without the server
	// and other judges it is unjudged, and no-verdict decides.
	if check != nil && !in.Workload.IsRollback {
		duration := cmp.Or(check.Spec.AnalysisDuration.Duration, defaultAnalysisDuration)
		j := v1alpha1.Judge{
			Name: v1alpha1.JudgeMetrics, Optional: optional(v1alpha1.JudgeMetrics), TimeoutSeconds: int32((duration + v1alpha1.AnalysisGrace) / time.Second),
			NoVerdict: v1alpha1.NoVerdictPolicy(cmp.Or(check.Spec.InsufficientDataPolicy, judgev1alpha1.InsufficientDataHold)),
			Check:     check.Namespace + "/" + check.Name, FailedVersions: failed,
		}
		if check.Spec.Probation != nil {
			j.ProbationSeconds = int32(check.Spec.Probation.Duration / time.Second)
		}
		out = append(out, j)
	}
	for _, name := range named {
		if name != v1alpha1.JudgeServer && name != v1alpha1.JudgeMetrics {
			out = append(out, v1alpha1.Judge{Name: name})
		}
	}
	if in.ServerConfigured {
		out = append(out, v1alpha1.Judge{Name: v1alpha1.JudgeServer, Optional: optional(v1alpha1.JudgeServer)})
	}
	others := slices.ContainsFunc(out, func(j v1alpha1.Judge) bool { return j.Name != v1alpha1.JudgeServer })
	if !others {
		return nil
	}
	if !slices.ContainsFunc(out, func(j v1alpha1.Judge) bool { return !j.Optional }) {
		for i := range out {
			out[i].Optional = false // without a required judge a batch would pass at once
		}
	}
	return out
}

// metricCheck returns the MetricCheck of a workload, or nil.
func (r *Reconciler) metricCheck(w *workload.Workload) (*judgev1alpha1.MetricCheck, error) {
	all, err := r.metricChecks.MetricChecks(w.Namespace).List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list MetricChecks of namespace %s: %w", w.Namespace, err)
	}
	byDefault, err := r.metricChecks.MetricChecks(v1alpha1.SystemNamespace).Get(judgev1alpha1.DefaultName)
	if err != nil && !apierrs.IsNotFound(err) {
		return nil, fmt.Errorf("get the default MetricCheck: %w", err)
	}
	if err != nil {
		byDefault = nil
	}
	return judgev1alpha1.Select(all, byDefault, w.Labels), nil
}
