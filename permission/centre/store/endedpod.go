package store

import "time"

// LockPod locks a pod until the transaction ends, whatever is stored about it.
func (t Tx) LockPod(cluster, uid string) error {
	if !t.dialect.numbered {
		return nil // SQLite has one writer
	}
	_, err := t.exec("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", cluster+"/"+uid)
	return err
}

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
