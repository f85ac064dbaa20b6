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

// The types of OpsConfigInfo. The first two are from the AlterShield Operator.
const (
	// ConfigBlocking (no content): a failed check suspends the workload and
	// stops its rollout. Default: enabled.
	ConfigBlocking ConfigType = "isBlockingUp"
	// ConfigBatch (content: percentage of the replicas, 1 to 100): pods are judged in
	// batches of that size, at least 1 pod. Default: disabled, one pod per batch.
	ConfigBatch ConfigType = "isBranch"
	// ConfigNoVerdict (content: Pass, Hold or Fail): the outcome of an unjudged batch.
	// Default: Pass.
	ConfigNoVerdict ConfigType = "no-verdict"
	// ConfigNoVerdictPre (content: Pass, Hold or Fail): the same for the stage PRE of a
	// batch. Default: the value of ConfigNoVerdict.
	ConfigNoVerdictPre ConfigType = "no-verdict-pre"
	// ConfigNoVerdictPost (content: Pass, Hold or Fail): the same for the stage POST of
	// a batch. Default: the value of ConfigNoVerdict.
	ConfigNoVerdictPost ConfigType = "no-verdict-post"
	// ConfigNoVerdictOrder (content: Pass, Hold or Fail): the same for the order
	// as a whole. Default: the value of ConfigNoVerdict.
	ConfigNoVerdictOrder ConfigType = "no-verdict-order"
	// ConfigNoVerdictContradicted (content: Pass, Hold or Fail): the outcome of a stage
	// of a batch or order whose pass the server contradicts. It overrides the types
	// above. Default: Hold.
	ConfigNoVerdictContradicted ConfigType = "no-verdict-contradicted"
	// ConfigWaitThreshold (content: a duration): how long Breakwater waits for a batch
	// to become full. Default: 60s.
	ConfigWaitThreshold ConfigType = "wait-threshold"
	// ConfigPreTimeout (content: a duration): timeout of a PRE verdict, from the first
	// call; longer than the server's own timeout. Default: 120s.
	ConfigPreTimeout ConfigType = "pre-timeout"
	// ConfigPostTimeout (content: a duration): the same for POST. Default: 120s.
	ConfigPostTimeout ConfigType = "post-timeout"
	// ConfigOrderTimeout (content: a duration): timeout until the server accepts an
	// order, from the first result of a call that opens it. Default: 120s.
	ConfigOrderTimeout ConfigType = "order-timeout"
	// ConfigSubmitTimeout (content: a duration): how long Breakwater tries to make the
	// first call for a stage of a batch or order: function submit, the Broker or the
	// circuit breaker may prevent it. Default: 10m.
	ConfigSubmitTimeout ConfigType = "submit-timeout"
	// ConfigReleaseTimeout (content: a duration): how long a rollout may make no progress
	// until its release fails. Default: 24h.
	ConfigReleaseTimeout ConfigType = "release-timeout"
	// ConfigRevisionPods (content: a number of pods, 1 to 100, or a duration): the pods of a Revision
	// of a Knative Service that are judged: its first ones, or those that start within that time
	// of the first batch. Default: 10m.
	ConfigRevisionPods ConfigType = "revision-pods"
	// ConfigSelfHealing (content: a duration; empty is the default): if a new pod
	// does not run for that long and none becomes Ready, the release is rolled back to a
	// version whose pods are all Ready or, if no other version has pods and no pod of this
	// one is Ready, to the newest version that succeeded. Default: enabled, 2m.
	ConfigSelfHealing ConfigType = "self-healing"
	// ConfigAutomaticRollback (no content): a release that failed its check is rolled
	// back to the newest version that succeeded. Default: disabled.
	ConfigAutomaticRollback ConfigType = "automatic-rollback"
	// ConfigHistoryLimit (content: a number, 1 to 100): maximum number of saved
	// templates per workload. Default: 10.
	ConfigHistoryLimit ConfigType = "history-limit"
	// ConfigShadow (no content): the webhooks decide about releases, count and report, but deny none; the
	// controller holds no rollout, and rolls back only on request. Policies deny as before. It overrides
	// ConfigBlocking, ConfigSelfHealing and ConfigAutomaticRollback. Default: disabled.
	ConfigShadow ConfigType = "shadow"
	// ConfigReleaseCheck (content: a duration of 100ms to 4s; empty is 2s): the server
	// is asked before a release is admitted, with that timeout. Default: disabled.
	ConfigReleaseCheck ConfigType = "release-check"
	// ConfigReleaseCheckNoVerdict (content: Pass or Fail): the outcome of a release
	// check without a verdict. Default: Pass.
	ConfigReleaseCheckNoVerdict ConfigType = "release-check-no-verdict"
	// ConfigBypass (content: Authorized or Recorded): who may repair a suspended workload,
	// allow a second repair, delete the workload, and add or change its owners. Default:
	// Recorded.
	ConfigBypass ConfigType = "bypass"
	// ConfigJudges (content: names of judges, separated by commas): who must answer for a
	// batch. Default: the server and metrics, if they are configured.
	ConfigJudges ConfigType = "judges"
)

// NoVerdictPolicy is the content of ConfigNoVerdict and the related types.
type NoVerdictPolicy string

// The policies for an unjudged batch.
const (
	// NoVerdictPass counts it as passed, and reports it.
	NoVerdictPass NoVerdictPolicy = "Pass"
	// NoVerdictHold waits for a late verdict of a judge or, if the order was not accepted, for the
	// server. A person also ends the wait.
	NoVerdictHold NoVerdictPolicy = "Hold"
	// NoVerdictFail counts it as failed.
	NoVerdictFail NoVerdictPolicy = "Fail"
)

// BypassPolicy is the content of ConfigBypass.
type BypassPolicy string

// The policies for the actions of ConfigBypass.
const (
	// BypassRecorded allows them to every user who may update or delete the workload. Only a
	// repair is recorded, with its user.
	BypassRecorded BypassPolicy = "Recorded"
	// BypassAuthorized also requires the verb BypassVerb.
	BypassAuthorized BypassPolicy = "Authorized"
)

// BypassVerb is the verb on changeworkloads in a namespace that BypassAuthorized requires
// for the actions of ConfigBypass.
const BypassVerb = "bypass"

// Bounds of a content that is a duration.
const (
	minDuration = time.Second
	maxDuration = 24 * time.Hour
)

// contentValidators validate the content of each type.
var contentValidators = map[ConfigType]func(string) error{
	ConfigBlocking:       noContent,
	ConfigBatch:          valid(ParsePercent),
	ConfigNoVerdict:      valid(ParseNoVerdict),
	ConfigNoVerdictPre:   valid(ParseNoVerdict),
	ConfigNoVerdictPost:  valid(ParseNoVerdict),
	ConfigNoVerdictOrder: valid(ParseNoVerdict),

	ConfigNoVerdictContradicted: valid(ParseNoVerdict),

	ConfigWaitThreshold: valid(ParseDuration),
	ConfigPreTimeout:    valid(ParseDuration),
	ConfigPostTimeout:   valid(ParseDuration),
	ConfigOrderTimeout:  valid(ParseDuration),
	ConfigSubmitTimeout: valid(ParseDuration),

	ConfigReleaseTimeout: valid(ParseDuration),
	ConfigRevisionPods:   func(s string) error { _, _, err := ParseRevisionPods(s); return err },

	ConfigSelfHealing:       optionalDuration,
	ConfigAutomaticRollback: noContent,
	ConfigHistoryLimit:      valid(ParseCount),
	ConfigShadow:            noContent,
	ConfigBypass:            valid(ParseBypass),

	ConfigJudges: valid(ParseJudges),

	ConfigReleaseCheck:          valid(ParseReleaseCheck),
	ConfigReleaseCheckNoVerdict: valid(ParseReleaseCheckNoVerdict),
}

// ConfigTypes returns every type, sorted.
func ConfigTypes() []string {
	names := make([]string, 0, len(contentValidators))
	for t := range contentValidators {
		names = append(names, string(t))
	}
	slices.Sort(names)
	return names
}

// KnownConfigType reports whether the type is known.
func KnownConfigType(t ConfigType) bool { _, ok := contentValidators[t]; return ok }

// ValidateContent returns an error if the content is invalid for type t.
func ValidateContent(t ConfigType, content string) error {
	validate, ok := contentValidators[t]
	if !ok {
		return fmt.Errorf("unknown type %q; known types are %s", t, strings.Join(ConfigTypes(), ", "))
	}
	return validate(content)
}

func noContent(s string) error {
	if strings.TrimSpace(s) != "" {
		return fmt.Errorf("%q is set, but this type has no content: use enable", s)
	}
	return nil
}

// valid makes a validator of a parser.
func valid[T any](parse func(string) (T, error)) func(string) error {
	return func(s string) error { _, err := parse(s); return err }
}

func optionalDuration(s string) error {
	if strings.TrimSpace(s) == "" {
		return nil
	}
	_, err := ParseDuration(s)
	return err
}

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
		return 0, fmt.Errorf("%q is not a percentage of the replicas: write a whole number from 1 to 100", s)
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

// ParseCount reads a whole number from 1 to 100.
func ParseCount(s string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || n < 1 || n > 100 {
		return 0, fmt.Errorf("%q is not a count: write a whole number from 1 to 100", s)
	}
	return n, nil
}

// ParseRevisionPods reads a number of pods as ParseCount does, or a duration as ParseDuration does.
// The other value is 0.
func ParseRevisionPods(s string) (pods int, window time.Duration, err error) {
	if pods, err = ParseCount(s); err == nil {
		return pods, 0, nil
	}
	if window, err = ParseDuration(s); err == nil {
		return 0, window, nil
	}
	return 0, 0, fmt.Errorf("%q is neither a number of pods nor a duration: write a whole number from 1 to 100, such as 3, or %s to %s, such as 10m",
		s, minDuration, maxDuration)
}

// DefaultReleaseCheck is the timeout of a release check if the content of
// ConfigReleaseCheck is empty.
const DefaultReleaseCheck = 2 * time.Second

// Bounds of ConfigReleaseCheck. The API server waits 5 s for the webhook, which needs
// time for more than the query.
const (
	minReleaseCheck = 100 * time.Millisecond
	maxReleaseCheck = 4 * time.Second
)

// ParseReleaseCheck reads a Go duration of 100ms to 4s; empty is DefaultReleaseCheck.
func ParseReleaseCheck(s string) (time.Duration, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return DefaultReleaseCheck, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration: write for example 2s, or leave it empty for %s", s, DefaultReleaseCheck)
	}
	if d < minReleaseCheck || d > maxReleaseCheck {
		return 0, fmt.Errorf("%q is out of range: write %s to %s, because the API server waits 5s for the webhook",
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
		return "", errors.New("Hold is not supported here: a release is admitted or denied immediately and cannot wait for a late verdict; write Pass or Fail")
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
