// Package settings turns OpsConfigInfo objects into the values that every
// binary works with. From is pure; Store keeps its result current.
package settings

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// Settings are the values in force. docs/configuration.md has the same table.
type Settings struct {
	// Shadow: what would have been refused, held or rolled back is told, and is
	// not. The switches of what would do so are false then, whatever their
	// objects say, so that nobody has to ask for both. Default false.
	Shadow bool
	// Blocking: a failed check suspends the workload. Default true.
	Blocking bool
	// BatchPercent is the size of a batch in per cent of the replicas; 0 means
	// that every pod is a batch of its own. Default 0.
	BatchPercent int32
	// NoVerdict is what counts where nobody judged. Default Pass.
	NoVerdict v1alpha1.NoVerdictPolicy
	// NoVerdictPre, NoVerdictPost and NoVerdictOrder override NoVerdict for the
	// stages of a batch and for the order as a whole; empty where they do not.
	NoVerdictPre, NoVerdictPost, NoVerdictOrder v1alpha1.NoVerdictPolicy
	// WaitThreshold is how long a batch that is not full is waited for. Default 60s.
	WaitThreshold time.Duration
	// PreTimeout is how long a PRE verdict is waited for. Default 120s.
	PreTimeout time.Duration
	// PostTimeout is how long a POST verdict is waited for. Default 120s.
	PostTimeout time.Duration
	// OrderTimeout is how long the server is asked to take an order. Default 120s.
	OrderTimeout time.Duration
	// SelfHealing: a release whose pods do not come up goes back. Default true.
	SelfHealing bool
	// HealAfter is how long its pods may take to come up. Default 2m.
	HealAfter time.Duration
	// AutomaticRollback: a release that failed its check goes back. Default false.
	AutomaticRollback bool
	// HistoryLimit is how many templates of successful versions are kept of a
	// workload. Default 10.
	HistoryLimit int
	// ReleaseCheck is how long the server has to answer about a release before
	// it is admitted; 0 means that it is not asked. Default 0.
	ReleaseCheck time.Duration
	// ReleaseCheckNoVerdict says what becomes of a release about which the
	// server said neither pass nor fail: Pass or Fail. Default Pass.
	ReleaseCheckNoVerdict v1alpha1.NoVerdictPolicy
	// Bypass is who may release a repair of a suspended workload. Default Recorded.
	Bypass v1alpha1.BypassPolicy
}

// Default returns the values that hold where no OpsConfigInfo says otherwise.
func Default() Settings {
	return Settings{
		Blocking:      true,
		NoVerdict:     v1alpha1.NoVerdictPass,
		WaitThreshold: 60 * time.Second,
		PreTimeout:    120 * time.Second,
		PostTimeout:   120 * time.Second,
		OrderTimeout:  120 * time.Second,
		SelfHealing:   true,
		HealAfter:     2 * time.Minute,
		HistoryLimit:  10,
		Bypass:        v1alpha1.BypassRecorded,

		ReleaseCheckNoVerdict: v1alpha1.NoVerdictPass,
	}
}

// BatchSize returns how many pods make a batch of a workload with that many
// replicas: at least 1.
func (s Settings) BatchSize(replicas int32) int32 {
	return max(1, replicas*s.BatchPercent/100)
}

// BatchNoVerdict is what a batch counts as of which nobody judged these stages:
// the strictest policy of them. Without a stage it is the strictest of both.
func (s Settings) BatchNoVerdict(stages ...v1alpha1.Stage) v1alpha1.NoVerdictPolicy {
	if len(stages) == 0 {
		stages = []v1alpha1.Stage{v1alpha1.StagePre, v1alpha1.StagePost}
	}
	of := map[v1alpha1.Stage]v1alpha1.NoVerdictPolicy{v1alpha1.StagePre: s.NoVerdictPre, v1alpha1.StagePost: s.NoVerdictPost}
	strictest := v1alpha1.NoVerdictPass
	for _, stage := range stages {
		strictest = stricter(strictest, cmp.Or(of[stage], s.NoVerdict))
	}
	return strictest
}

// OrderNoVerdict is what a release counts as whose order as a whole nobody judged.
func (s Settings) OrderNoVerdict() v1alpha1.NoVerdictPolicy {
	return cmp.Or(s.NoVerdictOrder, s.NoVerdict)
}

// ReleaseNoVerdict is what a release counts as whose order the server did not
// take: neither the order nor any batch of it is judged.
func (s Settings) ReleaseNoVerdict() v1alpha1.NoVerdictPolicy {
	return stricter(s.BatchNoVerdict(), s.OrderNoVerdict())
}

func stricter(a, b v1alpha1.NoVerdictPolicy) v1alpha1.NoVerdictPolicy {
	for _, p := range []v1alpha1.NoVerdictPolicy{v1alpha1.NoVerdictFail, v1alpha1.NoVerdictHold} {
		if a == p || b == p {
			return p
		}
	}
	return v1alpha1.NoVerdictPass
}

// From derives the settings from the objects. Only objects of
// v1alpha1.SystemNamespace count; of several with one type the oldest does; a
// content that does not parse (admission refuses it, but an object may be
// older than the webhook) leaves the default.
func From(objects []*v1alpha1.OpsConfigInfo) Settings {
	s := Default()
	for _, c := range Effective(objects) {
		apply(&s, c.Spec)
	}
	if s.Shadow {
		// Every switch that refuses, holds or changes a workload is off.
		s.Blocking, s.SelfHealing, s.AutomaticRollback = false, false, false
	}
	return s
}

// Effective returns the objects that count, one a type, sorted by type.
func Effective(objects []*v1alpha1.OpsConfigInfo) []*v1alpha1.OpsConfigInfo {
	var in []*v1alpha1.OpsConfigInfo
	for _, c := range objects {
		if c.Namespace == v1alpha1.SystemNamespace && c.DeletionTimestamp == nil {
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

func apply(s *Settings, spec v1alpha1.OpsConfigInfoSpec) {
	switch spec.Type {
	case v1alpha1.ConfigBlocking:
		s.Blocking = spec.Enable
		return
	case v1alpha1.ConfigShadow:
		s.Shadow = spec.Enable
		return
	case v1alpha1.ConfigBatch:
		if n, err := v1alpha1.ParsePercent(spec.Content); err == nil && spec.Enable {
			s.BatchPercent = n
		}
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
	case v1alpha1.ConfigNoVerdict:
		setPolicy(&s.NoVerdict, spec.Content)
	case v1alpha1.ConfigNoVerdictPre:
		setPolicy(&s.NoVerdictPre, spec.Content)
	case v1alpha1.ConfigNoVerdictPost:
		setPolicy(&s.NoVerdictPost, spec.Content)
	case v1alpha1.ConfigNoVerdictOrder:
		setPolicy(&s.NoVerdictOrder, spec.Content)
	case v1alpha1.ConfigBypass:
		if p, err := v1alpha1.ParseBypass(spec.Content); err == nil {
			s.Bypass = p
		}
	case v1alpha1.ConfigWaitThreshold:
		setDuration(&s.WaitThreshold, spec.Content)
	case v1alpha1.ConfigPreTimeout:
		setDuration(&s.PreTimeout, spec.Content)
	case v1alpha1.ConfigPostTimeout:
		setDuration(&s.PostTimeout, spec.Content)
	case v1alpha1.ConfigOrderTimeout:
		setDuration(&s.OrderTimeout, spec.Content)
	case v1alpha1.ConfigSelfHealing:
		setDuration(&s.HealAfter, spec.Content)
	case v1alpha1.ConfigHistoryLimit:
		if n, err := v1alpha1.ParseCount(spec.Content); err == nil {
			s.HistoryLimit = n
		}
	case v1alpha1.ConfigReleaseCheck:
		if d, err := v1alpha1.ParseReleaseCheck(spec.Content); err == nil {
			s.ReleaseCheck = d
		}
	case v1alpha1.ConfigReleaseCheckNoVerdict:
		if p, err := v1alpha1.ParseReleaseCheckNoVerdict(spec.Content); err == nil {
			s.ReleaseCheckNoVerdict = p
		}
	}
}

func setDuration(to *time.Duration, content string) {
	if d, err := v1alpha1.ParseDuration(content); err == nil {
		*to = d
	}
}

func setPolicy(to *v1alpha1.NoVerdictPolicy, content string) {
	if p, err := v1alpha1.ParseNoVerdict(content); err == nil {
		*to = p
	}
}
