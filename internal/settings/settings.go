// Package settings computes the settings of the controller and the webhook from OpsConfigInfo
// objects. FromObjects is pure; Store keeps its result current.
package settings

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// Settings are the effective settings; docs/configuration.md lists them.
type Settings struct {
	// Shadow: denials and holds are reported, but not carried out. Breakwater rolls back
	// only on request. It does not report the automatic rollbacks that it would have made. Blocking,
	// SelfHealing and AutomaticRollback are false then, so that users of Settings need not check both.
	// Default false.
	Shadow bool
	// Blocking: a failed check suspends the workload and stops its rollout, and updates of suspended
	// workloads are denied. While it is false neither happens, also for workloads that are suspended
	// already. Default true.
	Blocking bool
	// BatchPercent is the size of a batch as percentage of the replicas; 0
	// means one pod per batch. Default 0.
	BatchPercent int32
	// NoVerdict is the outcome of an unjudged batch or order. Default Pass.
	NoVerdict v1alpha1.NoVerdictPolicy
	// NoVerdictPre, NoVerdictPost and NoVerdictOrder override NoVerdict for the
	// stages of a batch and for the order as a whole. Default empty: no
	// override.
	NoVerdictPre, NoVerdictPost, NoVerdictOrder v1alpha1.NoVerdictPolicy
	// NoVerdictContradicted is the outcome of a stage of a batch or order whose
	// pass the server contradicts. It overrides the four policies above. Default
	// Hold.
	NoVerdictContradicted v1alpha1.NoVerdictPolicy
	// WaitThreshold is how long to wait for a batch to become full. Default
	// 60s.
	WaitThreshold time.Duration
	// PreTimeout is the timeout of a PRE verdict, from the first call. Default
	// 120s.
	PreTimeout time.Duration
	// PostTimeout is the same for a POST verdict. Default 120s.
	PostTimeout time.Duration
	// OrderTimeout is the timeout until the server accepts an order, from the
	// first result of a call that opens it. Default 120s.
	OrderTimeout time.Duration
	// SubmitTimeout is the timeout of the first call of a stage, from its first
	// wake-up. Default 10m.
	SubmitTimeout time.Duration
	// ReleaseTimeout is how long a rollout may make no progress until its release
	// fails. Default 24h.
	ReleaseTimeout time.Duration
	// SelfHealing: a release whose pods do not run is rolled back.
	// Default true.
	SelfHealing bool
	// HealAfter: a release is rolled back if one of its pods does not run for this time and none
	// becomes Ready in it. Default 2m.
	HealAfter time.Duration
	// AutomaticRollback: a release that failed its check is rolled back.
	// Default false.
	AutomaticRollback bool
	// RevisionPods are the pods that a release of a Knative Service is judged by. Default: those that
	// start within 10m of the first batch.
	RevisionPods RevisionPods
	// HistoryLimit is the maximum number of saved templates per workload.
	// Default 10.
	HistoryLimit int
	// ReleaseCheckTimeout is the timeout of the release check; 0 disables it. Default
	// 0.
	ReleaseCheckTimeout time.Duration
	// ReleaseCheckNoVerdict is the outcome of a release check without a
	// verdict: Pass or Fail. Default Pass.
	ReleaseCheckNoVerdict v1alpha1.NoVerdictPolicy
	// Bypass is who may repair or delete a suspended workload, or change its owners. Default
	// Recorded.
	Bypass v1alpha1.BypassPolicy
	// Judges are the names of the judges that must answer for a batch. Default empty:
	// every judge that is configured.
	Judges []string
}

// RevisionPods are the first pods of a Revision of a Knative Service. The autoscaler may add pods for
// as long as a Revision runs; pods that start later are not judged.
type RevisionPods struct {
	// Count is their number, or 0.
	Count int
	// Window is the time from the first batch until their creation, if Count is 0.
	Window time.Duration
}

// Default returns the settings without any OpsConfigInfo.
func Default() Settings {
	return Settings{
		Blocking:      true,
		NoVerdict:     v1alpha1.NoVerdictPass,
		WaitThreshold: 60 * time.Second,
		PreTimeout:    120 * time.Second,
		PostTimeout:   120 * time.Second,
		OrderTimeout:  120 * time.Second,
		SubmitTimeout: 10 * time.Minute,
		SelfHealing:   true,
		HealAfter:     2 * time.Minute,
		HistoryLimit:  10,
		Bypass:        v1alpha1.BypassRecorded,

		ReleaseTimeout:        24 * time.Hour,
		RevisionPods:          RevisionPods{Window: 10 * time.Minute},
		NoVerdictContradicted: v1alpha1.NoVerdictHold,
		ReleaseCheckNoVerdict: v1alpha1.NoVerdictPass,
	}
}

// maxBatchSize is the largest number of pods in a batch. A ChangePod has the pods of its batch and their results, and
// must stay below the 1.5 MiB limit of etcd.
const maxBatchSize = 1000

// BatchSize returns the number of pods in a batch of a workload with that many
// replicas, at least 1 and at most maxBatchSize.
func (s Settings) BatchSize(replicas int32) int32 {
	return min(max(1, replicas*s.BatchPercent/100), maxBatchSize)
}

// FromObjects computes the settings from the objects; see Effective. Invalid
// content leaves the default: admission denies it, but an object may be older
// than the webhook.
func FromObjects(objects []*v1alpha1.OpsConfigInfo) Settings {
	s := Default()
	for _, c := range Effective(objects) {
		apply(&s, c.Spec)
	}
	if s.Shadow {
		// Disable holds, denials because of suspensions, self-healing and automatic rollbacks.
		s.Blocking, s.SelfHealing, s.AutomaticRollback = false, false, false
	}
	return s
}

// Effective returns copies of the effective objects with defaults, sorted by type: those of
// v1alpha1.SystemNamespace, and of several with the same type the oldest.
func Effective(objects []*v1alpha1.OpsConfigInfo) []*v1alpha1.OpsConfigInfo {
	var in []*v1alpha1.OpsConfigInfo
	for _, c := range objects {
		if c.Namespace == v1alpha1.SystemNamespace && c.DeletionTimestamp == nil {
			c = c.DeepCopy()
			c.SetDefaults(context.Background()) // the webhook was down when it was applied
			in = append(in, c)
		}
	}
	slices.SortFunc(in, func(a, b *v1alpha1.OpsConfigInfo) int {
		if n := strings.Compare(string(a.Spec.Type), string(b.Spec.Type)); n != 0 {
			return n
		}
		if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
			return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
		}
		return strings.Compare(a.Name, b.Name)
	})
	return slices.CompactFunc(in, func(a, b *v1alpha1.OpsConfigInfo) bool {
		return a.Spec.Type == b.Spec.Type
	})
}

// EffectiveInstead returns the object that takes effect instead of c because it is older and has the same type; nil if there is none.
func EffectiveInstead(c *v1alpha1.OpsConfigInfo, all []*v1alpha1.OpsConfigInfo) *v1alpha1.OpsConfigInfo {
	for _, e := range Effective(all) {
		if e.Spec.Type == c.Spec.Type && e.Name != c.Name {
			return e
		}
	}
	return nil
}

func apply(s *Settings, spec v1alpha1.OpsConfigInfoSpec) {
	switch spec.Type {
	case v1alpha1.ConfigBlocking:
		s.Blocking = spec.Enable
		return
	case v1alpha1.ConfigShadow:
		s.Shadow = spec.Enable
		return
	case v1alpha1.ConfigSelfHealing:
		s.SelfHealing = spec.Enable
	case v1alpha1.ConfigAutomaticRollback:
		s.AutomaticRollback = spec.Enable
		return
	}
	if !spec.Enable {
		return
	}
	switch spec.Type {
	case v1alpha1.ConfigBatch:
		set(&s.BatchPercent, spec.Content, v1alpha1.ParsePercent)
	case v1alpha1.ConfigNoVerdict:
		set(&s.NoVerdict, spec.Content, v1alpha1.ParseNoVerdict)
	case v1alpha1.ConfigNoVerdictPre:
		set(&s.NoVerdictPre, spec.Content, v1alpha1.ParseNoVerdict)
	case v1alpha1.ConfigNoVerdictPost:
		set(&s.NoVerdictPost, spec.Content, v1alpha1.ParseNoVerdict)
	case v1alpha1.ConfigNoVerdictOrder:
		set(&s.NoVerdictOrder, spec.Content, v1alpha1.ParseNoVerdict)
	case v1alpha1.ConfigNoVerdictContradicted:
		set(&s.NoVerdictContradicted, spec.Content, v1alpha1.ParseNoVerdict)
	case v1alpha1.ConfigBypass:
		set(&s.Bypass, spec.Content, v1alpha1.ParseBypass)
	case v1alpha1.ConfigJudges:
		set(&s.Judges, spec.Content, v1alpha1.ParseJudges)
	case v1alpha1.ConfigWaitThreshold:
		set(&s.WaitThreshold, spec.Content, v1alpha1.ParseDuration)
	case v1alpha1.ConfigPreTimeout:
		set(&s.PreTimeout, spec.Content, v1alpha1.ParseDuration)
	case v1alpha1.ConfigPostTimeout:
		set(&s.PostTimeout, spec.Content, v1alpha1.ParseDuration)
	case v1alpha1.ConfigOrderTimeout:
		set(&s.OrderTimeout, spec.Content, v1alpha1.ParseDuration)
	case v1alpha1.ConfigSubmitTimeout:
		set(&s.SubmitTimeout, spec.Content, v1alpha1.ParseDuration)
	case v1alpha1.ConfigReleaseTimeout:
		set(&s.ReleaseTimeout, spec.Content, v1alpha1.ParseDuration)
	case v1alpha1.ConfigSelfHealing:
		set(&s.HealAfter, spec.Content, v1alpha1.ParseDuration)
	case v1alpha1.ConfigRevisionPods:
		if n, d, err := v1alpha1.ParseRevisionPods(spec.Content); err == nil {
			s.RevisionPods = RevisionPods{Count: n, Window: d}
		}
	case v1alpha1.ConfigHistoryLimit:
		set(&s.HistoryLimit, spec.Content, v1alpha1.ParseCount)
	case v1alpha1.ConfigReleaseCheck:
		set(&s.ReleaseCheckTimeout, spec.Content, v1alpha1.ParseReleaseCheck)
	case v1alpha1.ConfigReleaseCheckNoVerdict:
		set(&s.ReleaseCheckNoVerdict, spec.Content, v1alpha1.ParseReleaseCheckNoVerdict)
	}
}

// set sets a value from valid content.
func set[T any](to *T, content string, parse func(string) (T, error)) {
	if value, err := parse(content); err == nil {
		*to = value
	}
}
