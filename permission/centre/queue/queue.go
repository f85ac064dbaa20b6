// Package queue keeps jobs in the database of the store, so that a job is
// written in the transaction of the change that needs it. River runs the jobs:
// with its SQLite driver for one replica, and with its pgx driver, which is
// notified of new jobs, for many. Each provider has its own FIFO queue, so that
// a slow provider does not delay the others.
package queue

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivertype"

	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

const (
	// sqlitePoll is how often SQLite is polled for new jobs. PostgreSQL notifies;
	// postgresPoll covers lost notifications.
	sqlitePoll    = 50 * time.Millisecond
	postgresPoll  = 200 * time.Millisecond
	fetchCooldown = 20 * time.Millisecond

	// minScheduleDelay is the shortest delay for River's scheduler, which runs
	// every 5 s. A job that is due sooner starts at once and is snoozed.
	minScheduleDelay = 6 * time.Second

	// A job that is overdue by overdueAfter could not run in its turn, so it gets
	// priorityOverdue.
	overdueAfter    = 100 * time.Millisecond
	priorityOverdue = 1
	priorityDefault = 2

	// jobTimeout is longer than any job: the wait for a slot, the timeout of the
	// provider and two transactions.
	jobTimeout = 2 * time.Minute

	// jobRetention is how long a finished job is kept.
	jobRetention = 10 * time.Minute
)

// Job is one step of one grant. Each step has one job.
type Job struct {
	Application string `json:"application"`
	Ordinal     int    `json:"ordinal"`
	Step        int64  `json:"step"`
}

// Kind is the name of the job type in the database.
func (Job) Kind() string { return "grant" }

// InsertOpts make the job unique.
func (Job) InsertOpts() river.InsertOpts {
	return river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}}
}

// NotDue is returned by a handler if the job is not due yet.
type NotDue struct{ Wait time.Duration }

func (n NotDue) Error() string { return "not due for " + n.Wait.String() }

// Handler runs a job. A job that returns an error is retried.
type Handler interface {
	Handle(ctx context.Context, job Job) error
}

// runner is the part of a River client that does not depend on the driver.
type runner interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
	StopAndCancel(ctx context.Context) error
	Queues() *river.QueueBundle
}

// Queue holds the jobs of all providers.
type Queue struct {
	inserter *river.Client[*sql.Tx]
	runner   runner
	workers  int
	now      func() time.Time
}

// New creates the queue of a store. workers is the number of concurrent jobs for
// each provider in this replica.
func New(s *store.Store, handler Handler, workers int, now func() time.Time, log *slog.Logger) (*Queue, error) {
	all := river.NewWorkers()
	river.AddWorker(all, &worker{handler: handler})
	config := &river.Config{
		Workers: all, Logger: log, JobTimeout: jobTimeout, RescueStuckJobsAfter: jobTimeout + time.Minute,
		Queues:        map[string]river.QueueConfig{"idle": {MaxWorkers: 1, FetchPollInterval: time.Minute}},
		FetchCooldown: fetchCooldown, FetchPollInterval: sqlitePoll, RetryPolicy: &retryPolicy{now: now},
		CompletedJobRetentionPeriod: jobRetention, CancelledJobRetentionPeriod: jobRetention, DiscardedJobRetentionPeriod: jobRetention,
	}
	q := &Queue{workers: workers, now: now}
	var err error
	if !s.Shared() {
		q.inserter, err = river.NewClient(riversqlite.New(s.Writer()), config)
		q.runner = q.inserter
		return q, wrapCreateError(err)
	}
	config.FetchPollInterval = postgresPoll
	if q.runner, err = river.NewClient(riverpgxv5.New(s.Pool()), config); err != nil {
		return nil, wrapCreateError(err)
	}
	q.inserter, err = river.NewClient(riverdatabasesql.New(s.Writer()), &river.Config{Logger: log})
	return q, wrapCreateError(err)
}

func wrapCreateError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("create queue: %w", err)
}

// Enqueue inserts a job in the transaction, due at the given time, and returns its id.
func (q *Queue) Enqueue(ctx context.Context, tx *sql.Tx, provider string, job Job, due time.Time) (int64, error) {
	opts := &river.InsertOpts{Queue: queueName(provider), Priority: priorityDefault}
	switch wait := due.Sub(q.now()); {
	case wait > minScheduleDelay:
		opts.ScheduledAt = due
	case wait < -overdueAfter:
		opts.Priority = priorityOverdue
	}
	inserted, err := q.inserter.InsertTx(ctx, tx, job, opts)
	if err != nil {
		return 0, fmt.Errorf("enqueue job: %w", err)
	}
	return inserted.Job.ID, nil
}

// StartProvider starts running the jobs of a provider in this replica; it is idempotent.
func (q *Queue) StartProvider(provider string) error {
	err := q.runner.Queues().Add(queueName(provider), river.QueueConfig{MaxWorkers: q.workers})
	var already *river.QueueAlreadyAddedError
	if errors.As(err, &already) {
		return nil
	}
	return err
}

// Run runs jobs until ctx ends, then waits up to drain for running jobs.
func (q *Queue) Run(ctx context.Context, drain time.Duration) error {
	// The end of ctx must not cancel running jobs.
	if err := q.runner.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("start queue: %w", err)
	}
	<-ctx.Done()
	soft, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if err := q.runner.Stop(soft); err == nil {
		return nil
	}
	hard, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	return q.runner.StopAndCancel(hard)
}

// queueName is the name of a provider's queue: a hash, because River does not
// allow all names of providers.
func queueName(provider string) string {
	sum := sha256.Sum256([]byte(provider))
	return "p-" + hex.EncodeToString(sum[:10])
}

type worker struct {
	river.WorkerDefaults[Job]
	handler Handler
}

// Work runs one job.
func (w *worker) Work(ctx context.Context, job *river.Job[Job]) error {
	err := w.handler.Handle(ctx, job.Args)
	var notDue NotDue
	if errors.As(err, &notDue) {
		return river.JobSnooze(min(notDue.Wait, minScheduleDelay-time.Second-time.Millisecond))
	}
	return err
}

// retryPolicy delays the retry of jobs that returned an error, mostly of the database.
type retryPolicy struct{ now func() time.Time }

// NextRetry returns a delay of 1 to 2 s after the first error, up to 30 to 60 s.
func (r *retryPolicy) NextRetry(job *rivertype.JobRow) time.Time {
	base := min(time.Second<<min(len(job.Errors), 6), 30*time.Second)
	return r.now().Add(base + rand.N(base))
}
