package chaos

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	double "github.com/breakwater-dev/breakwater/test/altershield"
)

func TestASeedRepeatsItsPlansAndTheDoubleAcceptsThem(t *testing.T) {
	fails := 0
	for seed := range uint64(200) {
		plan := NewPlan(rand.New(rand.NewPCG(seed, 1)), 5)
		again := NewPlan(rand.New(rand.NewPCG(seed, 1)), 5)
		if diff := cmp.Diff(plan.Rules, again.Rules); diff != "" {
			t.Fatal(diff)
		}
		raw, err := json.Marshal(double.Script{Checks: plan.Rules})
		if err != nil {
			t.Fatal(err)
		}
		s, err := double.ParseScript(raw)
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range s.Checks {
			if rule.Then.Verdict == "fail" || rule.Then.Verdict == "unpass" {
				fails++
				break
			}
		}
	}
	if fails < 60 || fails > 140 {
		t.Errorf("%d of 200 plans have a fail, want about half", fails)
	}
}
