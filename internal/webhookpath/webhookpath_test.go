package webhookpath

import (
	"strings"
	"testing"
	"time"
)

var (
	key = []byte("-----BEGIN PRIVATE KEY-----")
	now = time.Date(2026, 11, 23, 12, 3, 0, 0, time.UTC)
)

func TestAPathIsAuthenticOnlyForItsKeyWebhookAndPeriod(t *testing.T) {
	path := Path(key, "vpodbudget.kb.io", now)
	if period, ok := Period(key, path); !ok || !Recent(period, now) {
		t.Errorf("%s is not valid", path)
	}
	later := Path(key, "vpodbudget.kb.io", now.Add(PeriodLength))
	if later == path {
		t.Error("the next period has the same path")
	}
	parts := strings.Split(path, "/")
	for name, forged := range map[string]string{
		"another webhook":    strings.Replace(path, "vpodbudget", "vownerbudget", 1),
		"another period":     strings.Replace(later, strings.Split(later, "-")[1], strings.Split(path, "-")[1], 1),
		"without a code":     Prefix + "vpodbudget.kb.io",
		"an empty code":      Prefix + strings.Split(parts[2], "-")[0] + "-/vpodbudget.kb.io",
		"a truncated code":   Prefix + parts[2][:len(parts[2])-2] + "/vpodbudget.kb.io",
		"a longer code":      Prefix + parts[2] + "00/vpodbudget.kb.io",
		"without a webhook":  Prefix + parts[2] + "/",
		"without the prefix": strings.TrimPrefix(path, "/admission"),
		"nothing":            "",
	} {
		if _, ok := Period(key, forged); ok {
			t.Errorf("%s is accepted: %s", name, forged)
		}
	}
	if _, ok := Period([]byte("another"), path); ok {
		t.Error("another key is accepted")
	}
	if _, ok := Period(nil, Path(nil, "vpodbudget.kb.io", now)); ok {
		t.Error("a path without a key is accepted")
	}
}

func TestAPathIsRecentForItsPeriodAndTheNeighbors(t *testing.T) {
	period, _ := Period(key, Path(key, "v.kb.io", now))
	for distance, want := range map[int]bool{-2: false, -1: true, 0: true, 1: true, 2: false} {
		if got := Recent(period, now.Add(time.Duration(distance)*PeriodLength)); got != want {
			t.Errorf("at a distance of %d periods: %t, want %t", distance, got, want)
		}
	}
	if got := UntilNextPeriod(now); got != 7*time.Minute {
		t.Errorf("the next period begins in %s", got)
	}
}

func TestAPathWithoutItsSecretNamesTheWebhook(t *testing.T) {
	if got := WithoutSecret(Path(key, "v.kb.io", now)); got != "/admission/v.kb.io" {
		t.Errorf("got %s", got)
	}
}
