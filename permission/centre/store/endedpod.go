package store

import (
	"database/sql"
	"time"
)

// LockPod locks a pod until the transaction ends, whatever is stored about it.
func (t Tx) LockPod(cluster, uid string) error {
	return t.LockNames([]string{PodName(cluster, uid)})
}

// LockNames locks names until the transaction ends, in their order, so that transactions do not
// block each other. The name of a pod is PodName.
func (t Tx) LockNames(sorted []string) error {
	if !t.dialect.numbered {
		return nil // SQLite has one writer
	}
	_, err := t.exec("SELECT pg_advisory_xact_lock(hashtextextended(name, 0)) FROM unnest(?::text[]) AS name", sorted)
	return err
}

// PodName is the name of a pod for LockNames.
func PodName(cluster, uid string) string { return cluster + "/" + uid }

// AddEndedPod stores that a pod has ended.
func (t Tx) AddEndedPod(cluster, uid string, at time.Time) error {
	_, err := t.exec("INSERT INTO ended_pods (cluster, pod_uid, ended) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", cluster, uid, micros(at))
	return err
}

// PodEnded reports whether a pod has ended.
func (v View) PodEnded(cluster, uid string) (bool, error) {
	n, err := v.count("SELECT COUNT(*) FROM ended_pods WHERE cluster = ? AND pod_uid = ?", cluster, uid)
	return n > 0, err
}

// EndedPods returns which pods of a cluster have ended.
func (v View) EndedPods(cluster string, uids []string) (map[string]bool, error) {
	where, arg := v.dialect.in("pod_uid", uids)
	ended := map[string]bool{}
	err := v.each(func(rows *sql.Rows) error {
		var uid string
		err := rows.Scan(&uid)
		ended[uid] = true
		return err
	}, "SELECT pod_uid FROM ended_pods WHERE cluster = ? AND "+where, cluster, arg)
	return ended, err
}
