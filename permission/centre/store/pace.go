package store

import "time"

// Reserve moves the time of a provider's next call on by n intervals and
// returns the first of the n moments that are reserved: not before now, less
// what a burst of b calls may catch up. When the first is further off than
// horizon nothing is reserved, and first says when there would be room.
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

// Now is the database's clock for PostgreSQL, which all replicas share, and
// zero for SQLite.
func (v View) Now() (time.Time, error) {
	if !v.dialect.numbered {
		return time.Time{}, nil
	}
	var n int64
	err := v.row("SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint").Scan(&n)
	return fromMicros(n), err
}
