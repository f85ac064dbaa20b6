package altershielddouble

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"slices"
)

// ParseScript parses a script. An unknown field is an error, because a mistyped
// field would have no effect on the test.
func ParseScript(raw []byte) (Script, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	var s Script
	if err := d.Decode(&s); err != nil {
		return Script{}, fmt.Errorf("parse script: %w", err)
	}
	return s, s.validate()
}

// LoadScript parses a script and sets it (SetScript).
func (d *Double) LoadScript(raw []byte) error {
	s, err := ParseScript(raw)
	if err != nil {
		return err
	}
	return d.SetScript(s)
}

func (s Script) validate() error {
	if s.SecondFinish < 0 || s.SecondFinish > 1 {
		return fmt.Errorf("secondFinish: %v is not a rate from 0 to 1", s.SecondFinish)
	}
	if err := s.Default.validate("default"); err != nil {
		return err
	}
	for i, rule := range s.Checks {
		at := fmt.Sprintf("checks[%d]", i)
		if err := rule.Match.validate(at); err != nil {
			return err
		}
		if rule.Nth < 0 || rule.Times < 0 {
			return fmt.Errorf("%s: nth and times cannot be negative", at)
		}
		if rule.Rate < 0 || rule.Rate > 1 {
			return fmt.Errorf("%s: rate %v is not from 0 to 1", at, rule.Rate)
		}
		if err := rule.Then.validate(at); err != nil {
			return err
		}
	}
	for i, rule := range s.Faults {
		if !slices.Contains(faults(), rule.Fault) {
			return fmt.Errorf("faults[%d].fault: %q is not one of %v", i, rule.Fault, faults())
		}
		if rule.Nth < 0 || rule.Times < 0 {
			return fmt.Errorf("faults[%d]: nth and times cannot be negative", i)
		}
		if rule.Fault == FaultSlow && rule.Delay.Duration <= 0 {
			return fmt.Errorf("faults[%d].delay: required for slow", i)
		}
	}
	return nil
}

func (m Match) validate(at string) error {
	if m.Stage != "" && m.Stage != Pre && m.Stage != Post {
		return fmt.Errorf("%s.match.stage: %q is neither PRE nor POST", at, m.Stage)
	}
	if !slices.Contains([]string{"", stepOrder, stepBatch, stepRelease}, m.Step) {
		return fmt.Errorf("%s.match.step: %q is not one of ORDER, BATCH, RELEASE", at, m.Step)
	}
	if _, err := path.Match(m.Pod, ""); err != nil {
		return fmt.Errorf("%s.match.pod: %w", at, err)
	}
	return nil
}

func (b Behaviour) validate(at string) error {
	if !slices.Contains([]Ending{"", Judged, TimedOut, Threw}, b.Ending) {
		return fmt.Errorf("%s: ending %q is not one of judged, timeout, exception", at, b.Ending)
	}
	if !slices.Contains(modes(), b.As) {
		return fmt.Errorf("%s: as %q is not one of json, binary, structured, batched", at, b.As)
	}
	if b.Copies < 0 {
		return fmt.Errorf("%s: copies cannot be negative", at)
	}
	return nil
}
