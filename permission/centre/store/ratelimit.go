package store

import (
	"database/sql"
	"errors"
	"time"
)

// LockNextCall returns when the next call to a provider may be made; zero if it was never
// called. It locks the provider's row of table pace until the transaction ends.
func (t Tx) LockNextCall(provider string) (time.Time, error) {
	var next int64
	read := func() error {
		return t.row("SELECT next FROM pace WHERE provider = ?"+t.dialect.lock, provider).Scan(&next)
	}
	err := read()
	if errors.Is(err, sql.ErrNoRows) {
		if _, err := t.exec("INSERT INTO pace (provider, next) VALUES (?, 0) ON CONFLICT DO NOTHING", provider); err != nil {
			return time.Time{}, err
		}
		err = read()
	}
	return fromMicros(next), err
}

// SetNextCall sets when the next call to a provider may be made.
func (t Tx) SetNextCall(provider string, next time.Time) error {
	return oneRow(t.exec("UPDATE pace SET next = ? WHERE provider = ?", micros(next), provider))
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
