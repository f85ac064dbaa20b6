package store

import (
	"database/sql"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// History reads the newest state changes of an application, at most limit of them, oldest
// first.
func (v View) History(application string, limit int) ([]api.HistoryEntry, error) {
	var entries []api.HistoryEntry
	err := v.each(func(rows *sql.Rows) error {
		var e api.HistoryEntry
		var at int64
		err := rows.Scan(&at, &e.Permission, &e.From, &e.To, &e.Attempt, &e.Reason, &e.Message, &e.Who)
		e.Time = fromMicros(at)
		entries = append(entries, e)
		return err
	}, `SELECT time, permission, state_from, state_to, attempt, reason, message, who FROM
		(SELECT * FROM history WHERE application = ? ORDER BY id DESC LIMIT ?) AS last ORDER BY id`, application, limit)
	return entries, err
}
