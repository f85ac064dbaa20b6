package ratelimit

import "time"

// Slots are the next slots of a provider within a transaction.
type Slots struct {
	earliest, next time.Time
	interval       time.Duration
	used           bool
	save           func(next time.Time) error
}

// NewSlots returns slots from next on, but not before earliest. save stores the slot
// after the used ones.
func NewSlots(earliest, next time.Time, interval time.Duration, save func(next time.Time) error) *Slots {
	return &Slots{earliest: earliest, next: next, interval: interval, save: save}
}

// Next returns the first slot that is not used.
func (s *Slots) Next() time.Time {
	if s.next.Before(s.earliest) {
		return s.earliest
	}
	return s.next
}

// CountUntil returns how many slots, at most limit, are at a time or before.
func (s *Slots) CountUntil(at time.Time, limit int) int {
	if n := at.Sub(s.Next()); n < 0 {
		return 0
	} else if s.interval > 0 {
		return min(limit, int(n/s.interval)+1)
	}
	return limit
}

// Use uses the slot that Next returns.
func (s *Slots) Use() {
	s.used = true
	s.next = s.next.Add(s.interval)
}

// Save stores which slots are used.
func (s *Slots) Save() error {
	if !s.used {
		return nil
	}
	return s.save(s.next)
}
