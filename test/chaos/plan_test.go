package chaos

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
)

func TestASeedRepeatsItsServerFaultsAndTheDoubleAcceptsThem(t *testing.T) {
	kinds, none := map[double.Fault]int{}, 0
	for seed := range uint64(200) {
		f := NewServerFaults(rand.New(rand.NewPCG(seed, 1)))
		again := NewServerFaults(rand.New(rand.NewPCG(seed, 1)))
		if diff := cmp.Diff(f, again); diff != "" {
			t.Fatal(diff)
		}
		raw, err := json.Marshal(double.Script{Faults: f.Rules})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := double.ParseScript(raw); err != nil {
			t.Fatal(err)
		}
		if len(f.Rules) == 0 {
			none++
			continue
		}
		kinds[f.Rules[0].Fault]++
		if f.For < minServerFault || f.For > maxServerFault {
			t.Errorf("seed %d: %s", seed, f)
		}
	}
	if none < 60 || none > 140 || len(kinds) != 5 {
		t.Errorf("%d of 200 releases have no fault, want about half; the others have %v", none, kinds)
	}
}

func TestASeedRepeatsItsPlansAndTheDoubleAcceptsThem(t *testing.T) {
	fails, forgotten, premature := 0, 0, 0
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
		failing := false
		for _, rule := range s.Checks {
			switch {
			case rule.Then.Forgotten:
				forgotten++
			case rule.Then.Premature:
				premature++
			case rule.Then.Verdict == "fail", rule.Then.Verdict == "unpass":
				failing = true
			}
		}
		if failing {
			fails++
		}
	}
	if fails < 60 || fails > 140 {
		t.Errorf("%d of 200 plans have a fail, want about half", fails)
	}
	// 200 plans have 1000 batches and 200 orders.
	if forgotten < 20 || forgotten > 60 || premature < 15 || premature > 55 {
		t.Errorf("%d forgotten starts, want about 40; %d passes before a fail, want about 34", forgotten, premature)
	}
}
