package v1alpha1

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ConfigType is spec.type of an OpsConfigInfo.
type ConfigType string

// The types of OpsConfigInfo. The first two are the original's.
const (
	// ConfigBlocking (no content): a failed check suspends the workload and
	// stops its rollout. Default: enabled.
	ConfigBlocking ConfigType = "isBlockingUp"
	// ConfigBatch (content: per cent of the replicas, 1 to 100): pods are
	// judged in batches of that size, at least 1 pod. Default: disabled, one
	// pod a batch.
	ConfigBatch ConfigType = "isBranch"
	// ConfigNoVerdict (content: Pass, Hold or Fail): what a batch counts as
	// that nobody judged. Default: Pass.
	ConfigNoVerdict ConfigType = "no-verdict"
	// ConfigNoVerdictPre (content: Pass, Hold or Fail): the same for the stage
	// PRE of a batch. Default: what ConfigNoVerdict says.
	ConfigNoVerdictPre ConfigType = "no-verdict-pre"
	// ConfigNoVerdictPost (content: Pass, Hold or Fail): the same for the stage
	// POST of a batch. Default: what ConfigNoVerdict says.
	ConfigNoVerdictPost ConfigType = "no-verdict-post"
	// ConfigNoVerdictOrder (content: Pass, Hold or Fail): the same for the order
	// as a whole. Default: what ConfigNoVerdict says.
	ConfigNoVerdictOrder ConfigType = "no-verdict-order"
	// ConfigWaitThreshold (content: a duration): how long a batch that is not
	// full is waited for. Default: 60s.
	ConfigWaitThreshold ConfigType = "wait-threshold"
	// ConfigPreTimeout (content: a duration): how long a PRE verdict is waited
	// for; longer than the server's own time-out. Default: 120s.
	ConfigPreTimeout ConfigType = "pre-timeout"
	// ConfigPostTimeout (content: a duration): the same for POST. Default: 120s.
	ConfigPostTimeout ConfigType = "post-timeout"
	// ConfigOrderTimeout (content: a duration): how long the server is asked
	// to take an order. Default: 120s.
	ConfigOrderTimeout ConfigType = "order-timeout"
	// ConfigSelfHealing (content: a duration; empty is the default): a release
	// whose new pods do not come up for that long goes back to the version that
	// runs beside it. Default: enabled, 2m.
	ConfigSelfHealing ConfigType = "self-healing"
	// ConfigAutomaticRollback (no content): a release that failed its check goes
	// back to the newest version that succeeded. Default: disabled.
	ConfigAutomaticRollback ConfigType = "automatic-rollback"
	// ConfigHistoryLimit (content: a number, 1 to 100): how many templates of
	// successful versions are kept of a workload. Default: 10.
	ConfigHistoryLimit ConfigType = "history-limit"
	// ConfigShadow (no content): every guard decides, counts and reports, and
	// neither refuses nor holds. It stands above ConfigBlocking. Default:
	// disabled.
	ConfigShadow ConfigType = "shadow"
	// ConfigReleaseCheck (content: a duration of 100ms to 4s, or nothing for
	// 2s): the server is asked about every release before it is admitted, and
	// has that long to answer. Default: disabled.
	ConfigReleaseCheck ConfigType = "release-check"
	// ConfigReleaseCheckNoVerdict (content: Pass or Fail): what becomes of a
	// release about which the server said neither pass nor fail. Default: Pass.
	ConfigReleaseCheckNoVerdict ConfigType = "release-check-no-verdict"
	// ConfigBypass (content: Authorized or Recorded): who may release a repair
	// of a suspended workload. Default: Recorded.
	ConfigBypass ConfigType = "bypass"
)

// NoVerdictPolicy is the content of ConfigNoVerdict and its likes.
type NoVerdictPolicy string

// The policies for a batch that nobody judged.
const (
	// NoVerdictPass lets it pass and says so.
	NoVerdictPass NoVerdictPolicy = "Pass"
	// NoVerdictHold waits for a late verdict or a person.
	NoVerdictHold NoVerdictPolicy = "Hold"
	// NoVerdictFail fails it.
	NoVerdictFail NoVerdictPolicy = "Fail"
)

// BypassPolicy is the content of ConfigBypass.
type BypassPolicy string

// The policies for a repair of a suspended workload.
const (
	// BypassRecorded lets everybody repair who may update the workload, and
	// records who did.
	BypassRecorded BypassPolicy = "Recorded"
	// BypassAuthorized also asks for the verb BypassVerb.
	BypassAuthorized BypassPolicy = "Authorized"
)

// BypassVerb on changeworkloads in a namespace is the right to repair its
// suspended workloads where BypassAuthorized asks for it.
const BypassVerb = "bypass"

// Bounds of a content that is a duration.
const (
	minDuration = time.Second
	maxDuration = 24 * time.Hour
)

// contentParsers says for each type how its content reads.
var contentParsers = map[ConfigType]func(string) error{
	ConfigBlocking:       noContent,
	ConfigBatch:          func(s string) error { _, err := ParsePercent(s); return err },
	ConfigNoVerdict:      noVerdict,
	ConfigNoVerdictPre:   noVerdict,
	ConfigNoVerdictPost:  noVerdict,
	ConfigNoVerdictOrder: noVerdict,
	ConfigWaitThreshold:  duration,
	ConfigPreTimeout:     duration,
	ConfigPostTimeout:    duration,
	ConfigOrderTimeout:   duration,

	ConfigSelfHealing:       func(s string) error { _, err := ParseOptionalDuration(s, 0); return err },
	ConfigAutomaticRollback: noContent,
	ConfigHistoryLimit:      func(s string) error { _, err := ParseCount(s); return err },
	ConfigShadow:            noContent,
	ConfigBypass:            func(s string) error { _, err := ParseBypass(s); return err },

	ConfigReleaseCheck:          func(s string) error { _, err := ParseReleaseCheck(s); return err },
	ConfigReleaseCheckNoVerdict: func(s string) error { _, err := ParseReleaseCheckNoVerdict(s); return err },
}

// ConfigTypes returns every type, sorted.
func ConfigTypes() []string {
	names := make([]string, 0, len(contentParsers))
	for t := range contentParsers {
		names = append(names, string(t))
	}
	slices.Sort(names)
	return names
}

// KnownConfigType says whether the type means anything.
func KnownConfigType(t ConfigType) bool { _, ok := contentParsers[t]; return ok }

// ParseContent says whether content reads as type t wants it.
func ParseContent(t ConfigType, content string) error {
	parse, ok := contentParsers[t]
	if !ok {
		return fmt.Errorf("unknown type %q; known are %s", t, strings.Join(ConfigTypes(), ", "))
	}
	return parse(content)
}

func noContent(s string) error {
	if strings.TrimSpace(s) != "" {
		return fmt.Errorf("%q is set, but this type has no content: use enable", s)
	}
	return nil
}

func noVerdict(s string) error { _, err := ParseNoVerdict(s); return err }

func duration(s string) error { _, err := ParseDuration(s); return err }

// ParseDuration reads a Go duration of one second to 24 hours.
func ParseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(strings.TrimSpace(s))
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration: write for example 90s or 2m", s)
	}
	if d < minDuration || d > maxDuration {
		return 0, fmt.Errorf("%q is out of range: write %s to %s", s, minDuration, maxDuration)
	}
	return d, nil
}

// ParsePercent reads a whole number from 1 to 100, with or without a % sign.
func ParsePercent(s string) (int32, error) {
	n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(s), "%"), 10, 32)
	if err != nil || n < 1 || n > 100 {
		return 0, fmt.Errorf("%q is not a per cent of the replicas: write a whole number from 1 to 100", s)
	}
	return int32(n), nil
}

// ParseNoVerdict reads Pass, Hold or Fail.
func ParseNoVerdict(s string) (NoVerdictPolicy, error) {
	switch p := NoVerdictPolicy(strings.TrimSpace(s)); p {
	case NoVerdictPass, NoVerdictHold, NoVerdictFail:
		return p, nil
	}
	return "", fmt.Errorf("%q is not a policy: write Pass, Hold or Fail", s)
}

// ParseOptionalDuration reads a duration as ParseDuration does; an empty
// content is the default.
func ParseOptionalDuration(s string, byDefault time.Duration) (time.Duration, error) {
	if strings.TrimSpace(s) == "" {
		return byDefault, nil
	}
	return ParseDuration(s)
}

// ParseCount reads a whole number from 1 to 100.
func ParseCount(s string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || n < 1 || n > 100 {
		return 0, fmt.Errorf("%q is not a count: write a whole number from 1 to 100", s)
	}
	return n, nil
}

// DefaultReleaseCheck is how long the server has to answer about a release
// where the content of ConfigReleaseCheck does not say.
const DefaultReleaseCheck = 2 * time.Second

// Bounds of a content of ConfigReleaseCheck. The API server waits 5 s for the
// webhook, which has more to do than to ask.
const (
	minReleaseCheck = 100 * time.Millisecond
	maxReleaseCheck = 4 * time.Second
)

// ParseReleaseCheck reads a Go duration of 100ms to 4s; nothing is
// DefaultReleaseCheck.
func ParseReleaseCheck(s string) (time.Duration, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return DefaultReleaseCheck, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration: write for example 2s, or nothing for %s", s, DefaultReleaseCheck)
	}
	if d < minReleaseCheck || d > maxReleaseCheck {
		return 0, fmt.Errorf("%q is out of range: write %s to %s, because the API server waits 5s for the webhook that asks",
			s, minReleaseCheck, maxReleaseCheck)
	}
	return d, nil
}

// ParseReleaseCheckNoVerdict reads Pass or Fail.
func ParseReleaseCheckNoVerdict(s string) (NoVerdictPolicy, error) {
	switch p := NoVerdictPolicy(strings.TrimSpace(s)); p {
	case NoVerdictPass, NoVerdictFail:
		return p, nil
	case NoVerdictHold:
		return "", errors.New("Hold has no meaning here: a release is admitted or refused at once, and nothing can wait for a late verdict; write Pass or Fail")
	}
	return "", fmt.Errorf("%q is not a policy for a release: write Pass or Fail", s)
}

// ParseBypass reads Authorized or Recorded.
func ParseBypass(s string) (BypassPolicy, error) {
	switch p := BypassPolicy(strings.TrimSpace(s)); p {
	case BypassRecorded, BypassAuthorized:
		return p, nil
	}
	return "", fmt.Errorf("%q is not a policy: write Authorized or Recorded", s)
}
