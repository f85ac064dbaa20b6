package store

import (
	"database/sql"
	"time"
)

// Cluster is a row of clusters: the reports of existing pods of a cluster.
type Cluster struct {
	Name string
	// UID identifies the cluster that has the name; empty before its first report or request.
	UID string
	// Reported is when the last report was complete.
	Reported time.Time
	// Unconfirmed is the number of applications that the last report did not revoke, because
	// no admin had confirmed it.
	Unconfirmed int
	// Confirmed is how many applications reports may revoke until ConfirmedUntil,
	// whatever their share.
	Confirmed      int
	ConfirmedUntil time.Time
}

const clusterColumns = "name, uid, reported, held, confirmed, confirmed_until"

// Cluster reads a cluster; ErrNotFound before its first report or request.
func (v View) Cluster(name string) (Cluster, error) {
	return scanCluster(v.row("SELECT "+clusterColumns+" FROM clusters WHERE name = ?", name).Scan)
}

// LockCluster reads a cluster, which it creates if necessary, and locks it until the
// transaction ends.
func (t Tx) LockCluster(name string) (Cluster, error) {
	if _, err := t.exec("INSERT INTO clusters ("+clusterColumns+") VALUES (?, '', 0, 0, 0, 0) ON CONFLICT DO NOTHING", name); err != nil {
		return Cluster{}, err
	}
	return scanCluster(t.row("SELECT "+clusterColumns+" FROM clusters WHERE name = ?"+t.dialect.lock, name).Scan)
}

// UpdateCluster writes a cluster.
func (t Tx) UpdateCluster(c Cluster) error {
	return oneRow(t.exec("UPDATE clusters SET uid = ?, reported = ?, held = ?, confirmed = ?, confirmed_until = ? WHERE name = ?",
		c.UID, micros(c.Reported), c.Unconfirmed, c.Confirmed, micros(c.ConfirmedUntil), c.Name))
}

// LastReports returns when each cluster with an unrevoked application last reported;
// zero if it never did.
func (v View) LastReports() (map[string]time.Time, error) {
	last := map[string]time.Time{}
	err := v.each(func(rows *sql.Rows) error {
		var name string
		var reported int64
		err := rows.Scan(&name, &reported)
		last[name] = fromMicros(reported)
		return err
	}, `SELECT a.cluster, COALESCE(c.reported, 0) FROM (SELECT DISTINCT cluster FROM applications WHERE state <> 'Revoked') a
		LEFT JOIN clusters c ON c.name = a.cluster`)
	return last, err
}

func scanCluster(scan func(...any) error) (Cluster, error) {
	var c Cluster
	var reported, until int64
	err := scan(&c.Name, &c.UID, &reported, &c.Unconfirmed, &c.Confirmed, &until)
	c.Reported, c.ConfirmedUntil = fromMicros(reported), fromMicros(until)
	return c, notFound(err)
}
