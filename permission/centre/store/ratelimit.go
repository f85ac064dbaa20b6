package store

import "time"

// Reserve reserves n slots, one interval apart, for calls to a provider and
// returns the first. The first slot is at most burst-1 intervals before now. If
// it is later than now+horizon, nothing is reserved.
func (t Tx) Reserve(provider string, now time.Time, interval time.Duration, burst, n int, horizon time.Duration) (first time.Time, reserved bool, err error) {
	if _, err := t.exec("INSERT INTO pace (provider, next) VALUES (?, 0) ON CONFLICT DO NOTHING", provider); err != nil {
		return first, false, err
	}
	var next int64
	if err := t.row("SELECT next FROM pace WHERE provider = ?"+t.dialect.lock, provider).Scan(&next); err != nil {
		return first, false, err
	}
	first = now.Add(-time.Duration(burst-1) * interval)
	if at := fromMicros(next); at.After(first) {
		first = at
	}
	if first.Sub(now) > horizon {
		return first, false, nil
	}
	_, err = t.exec("UPDATE pace SET next = ? WHERE provider = ?", micros(first.Add(time.Duration(n)*interval)), provider)
	return first, err == nil, err
}

// Now reads the clock of PostgreSQL, which all replicas share; it returns zero
// for SQLite.
func (v View) Now() (time.Time, error) {
	if !v.dialect.numbered {
		return time.Time{}, nil
	}
	var n int64
	err := v.row("SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint").Scan(&n)
	return fromMicros(n), err
}
